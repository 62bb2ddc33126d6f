"""Results on images from elsewhere, as they are kept."""

from __future__ import annotations

import math

import torch

from protopfaith.evaluation.external_results import DIFFERENCE, ExternalEvaluation, Judged, Row, file_name
from protopfaith.evaluation.metrics.bootstrap import SCORES, Interval
from protopfaith.evaluation.metrics.classification import classification

NAMES = ["cat", "dog"]


def result() -> ExternalEvaluation:
    scores = dict.fromkeys(SCORES, Interval(1.0, 0.2, 1.0))
    rows = (Row("external: clinic", 2, 2, scores), Row(DIFFERENCE, 0, 0, {**scores, "auroc": _unknown()}))
    images = (Judged("1.png", "cat", "a", "cat", 0.9), Judged("2.png", "dog", "b", error="2.png is broken."))
    judged = classification(torch.eye(2), torch.tensor([0, 1]), NAMES)
    return ExternalEvaluation("clinic", judged, rows, images, ("a note",), 1000)


def _unknown() -> Interval:
    return Interval(math.nan, math.nan, math.nan)


def test_what_could_not_be_judged_is_counted_and_named() -> None:
    assert result().problems == ["2.png is broken."]
    assert result().to_dict()["not_judged"] == 1


def test_json_has_no_not_a_number() -> None:
    assert set(result().to_dict()["rows"][1]["scores"]["auroc"].values()) == {None}


def test_a_difference_has_no_images_of_its_own() -> None:
    columns = [list(column.cells) for column in result().table().columns]
    assert columns[0] == ["external: clinic", DIFFERENCE]
    assert columns[1] == ["2", ""]


def test_no_name_leaves_the_folder_or_is_that_of_a_split() -> None:
    for name in ("test", "../../etc", "a/b", "", "x" * 500):
        assert "/" not in file_name(name)
        assert file_name(name).startswith("external-")
        assert len(file_name(name)) < 100
