"""Prototypes on parts: a small network on squares, and explainers that look where they are told."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch

from protopfaith.data import ImageData, ImageSet, load_data
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation import EXPLAINERS, Explained
from protopfaith.evaluation.parts import evaluate_parts, part_names
from protopfaith.evaluation.parts_results import part_remarks
from protopfaith.network import ProtoPNet, XProtoNet
from protopfaith.shapley import Players
from protopfaith.show.parts import parts_figure
from protopfaith.training.reference import weights_hash
from tests.evaluation.conftest import PREPROCESSING, SIZE


@pytest.fixture
def looking(images: ImageData) -> Iterator[None]:
    """Explainers that always find the square, or always the farthest corner from it."""

    def square(
        model: ProtoPNet, image: torch.Tensor, prototypes: Sequence[int], options: object
    ) -> Explained:
        pixels = PREPROCESSING.normalize(images.train.uint8())
        index = int((pixels - image).square().flatten(1).sum(1).argmin())
        mask = images.train.mask(index)["square"].double()
        return Explained(mask.expand(len(prototypes), -1, -1), shares=False)

    def away(model: ProtoPNet, image: torch.Tensor, prototypes: Sequence[int], options: object) -> Explained:
        mask = square(model, image, prototypes, options).maps[0]
        rows, columns = torch.where(mask > 0)
        corner = torch.zeros(SIZE, SIZE, dtype=torch.float64)
        corner[0 if rows[0] > 8 else -1, 0 if columns[0] > 8 else -1] = 1
        return Explained(corner.expand(len(prototypes), -1, -1), shares=False)

    EXPLAINERS["at_square"], EXPLAINERS["away"] = square, away  # type: ignore[assignment]
    yield
    del EXPLAINERS["at_square"], EXPLAINERS["away"]


@pytest.mark.usefixtures("looking")
def test_explainers_that_know_get_what_they_deserve(model: ProtoPNet, images: ImageData) -> None:
    found = evaluate_parts(model, PREPROCESSING, images.train, explainers=["at_square", "away"], box=0.25)
    right, wrong = found.scores
    assert (right.consistency, right.stability, right.coverage) == (1.0, 1.0, 1.0)
    assert (wrong.consistency, wrong.stability, wrong.coverage) == (0.0, 1.0, 0.0)
    assert {row.part for row in right.prototypes} == {"square"}
    assert {row.part for row in wrong.prototypes} == {""}
    assert len(found.places["away"]) == len(images.train)


def test_our_maps_and_protopnets_are_judged(model: ProtoPNet, images: ImageData, tmp_path: Path) -> None:
    found = evaluate_parts(model, PREPROCESSING, images.train, per_class=2, budget=128)
    assert [one.explainer for one in found.scores] == ["ours", "protopnet"]
    assert found.images == 4
    for one in found.scores:
        assert [row.prototype for row in one.prototypes] == [0, 1, 2, 3]
        assert all(0 <= value <= 1 for value in (one.consistency, one.stability, one.coverage))
    values = json.loads(found.save(tmp_path).read_text())
    remarks = part_remarks(tmp_path, weights_hash(model))
    assert sorted(remarks) == [0, 1, 2, 3]
    assert all("ours" in remark for remark in remarks.values())
    assert part_remarks(tmp_path, "other weights") == part_remarks(tmp_path / "nowhere", "") == {}
    assert values["scores"]["ours"]["stability"] == found.scores[0].stability
    with (tmp_path / "parts.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 8
    assert len(found.table().rows) == 2


def test_without_noise_everything_is_stable(model: ProtoPNet, images: ImageData) -> None:
    found = evaluate_parts(model, PREPROCESSING, images.train, per_class=2, budget=128, noise=0.0)
    assert [one.stability for one in found.scores] == [1.0, 1.0]


def test_points_are_as_good_as_maps(images: ImageData) -> None:
    from dataclasses import replace

    records = [replace(record, points={"tip": (1.0, 2.0)}) for record in images.test.records]
    points = ImageSet(images.test.pixels, records, images.classes)
    assert part_names(points) == ("tip",)
    assert part_names(images.test) == ("square",)


def test_classes_without_images_are_named(model: ProtoPNet, images: ImageData) -> None:
    missing = model.class_names[1]
    without = images.test.subset([i for i in range(len(images.test)) if images.test.records[i].label != 1])
    with pytest.raises(ProtoPFaithError, match=re.escape(f"no images of the classes asked for ({missing})")):
        evaluate_parts(model, PREPROCESSING, without, explainers=["protopnet"], classes=[1])
    with pytest.raises(ProtoPFaithError, match="an empty list"):
        evaluate_parts(model, PREPROCESSING, without, explainers=["protopnet"], classes=[])


def test_classes_are_drawn_or_named(model: ProtoPNet, images: ImageData) -> None:
    def judged(classes: object) -> set[str]:
        found = evaluate_parts(model, PREPROCESSING, images.train, explainers=["protopnet"], classes=classes)  # type: ignore[arg-type]
        return {row.class_name for row in found.scores[0].prototypes}

    assert judged([1]) == {"green"}
    assert len(judged(1)) == 1
    assert judged(None) == {"red", "green"}


def test_bad_requests_are_one_sentence(model: ProtoPNet, images: ImageData) -> None:
    bare = ImageSet(images.test.pixels, images.test.records, images.classes)
    with pytest.raises(ProtoPFaithError, match="no part locations"):
        evaluate_parts(model, PREPROCESSING, bare)
    for more, words in (
        ({"explainers": ["our"]}, "did you mean"),
        ({"explainers": []}, "at least one of ours"),
        ({"noise": -1.0}, "noise"),
        ({"box": 0.0}, "box"),
        ({"often": 2.0}, "consistent"),
        ({"classes": 0}, "classes"),
        ({"classes": [7]}, "class"),
        ({"per_class": 0}, "per class"),
        ({"seed": -1}, "seed"),
    ):
        with pytest.raises(ProtoPFaithError, match=words):
            evaluate_parts(model, PREPROCESSING, images.train, **more)  # type: ignore[arg-type]


def test_of_findings_prototypes_that_stand_for_them_are_judged() -> None:
    data = load_data("birds_multilabel", size=32, train=32, validation=0, test=32)
    torch.manual_seed(0)
    model = XProtoNet("small", list(data.classes), 4, 8).eval()
    found = evaluate_parts(
        model, data.preprocessing, data.test, explainers=["protopnet"], classes=[1, 4], per_class=2
    )
    judged = [row.prototype for row in found.scores[0].prototypes]
    signs, owners = model.prototype_signs, model.prototype_classes
    assert judged == [p for p in range(24) if owners[p] in (1, 4) and signs[p] > 0]
    assert found.owners == (1, 1, 4, 4)
    for image, finding in zip(found.shown, found.owners, strict=True):
        assert data.test.records[image].findings[finding] == 1
    assert parts_figure(found, data.test).axes


def test_one_region_has_no_place() -> None:
    birds = load_data("birds", size=32, train=8, validation=8, test=16)
    model = ProtoPNet("small", birds.classes, prototypes_per_class=1, prototype_channels=8).eval()
    with pytest.raises(ProtoPFaithError, match="One region covers the whole image of 32x32 pixels"):
        evaluate_parts(model, birds.preprocessing, birds.test, players=Players.windows((32, 32), 33))
