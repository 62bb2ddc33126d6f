"""A small network on images from elsewhere: what is judged, what is left out, and what is written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch

from protopfaith.data import ImageData
from protopfaith.data.external import External, Sample
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.external import evaluate_external
from protopfaith.evaluation.external_results import DIFFERENCE, INTERNAL
from protopfaith.evaluation.prediction import classify_set
from protopfaith.network import ProtoPNet
from tests.evaluation.conftest import PREPROCESSING, pictures

IMAGES = pictures("elsewhere", 40)


def external(**changes: str) -> External:
    """Forty images of two sites; `changes` are other labels by number."""
    samples = [
        Sample(
            f"{index}.png",
            changes.get(f"n{index}", IMAGES.classes[index % 2]),
            f"p{index // 4}",
            {"site": "north" if index < 20 else "south"},
        )
        for index in range(40)
    ]

    def pixels(index: int) -> torch.Tensor:
        if samples[index].path == "39.png":
            raise ProtoPFaithError("39.png is broken.")
        return IMAGES.image(index)

    return External("clinic", tuple(samples), pixels, IMAGES.sha256)


def test_the_scores_are_those_of_its_images(model: ProtoPNet) -> None:
    found = evaluate_external(model, PREPROCESSING, external(), resamples=50)
    expected = classify_set(model, IMAGES.subset(range(39)), PREPROCESSING)
    assert found.result.confusion == expected.confusion
    assert found.rows[0].scores["accuracy"].value == pytest.approx(expected.accuracy)
    assert (found.rows[0].images, found.rows[0].groups) == (39, 10)
    north, south = found.rows[1:]
    assert (north.name, north.images) == ("site: north", 20)
    assert (south.name, south.images) == ("site: south", 19)
    mixed = (20 * north.scores["accuracy"].value + 19 * south.scores["accuracy"].value) / 39
    assert mixed == pytest.approx(expected.accuracy)


def test_unreadable_images_are_rows(model: ProtoPNet) -> None:
    found = evaluate_external(model, PREPROCESSING, external(), resamples=50)
    assert found.problems == ["39.png is broken."]
    assert len(found.images) == 40
    assert found.images[-1].predicted == ""


def test_it_is_compared_with_the_internal_test_set(model: ProtoPNet, images: ImageData) -> None:
    found = evaluate_external(model, PREPROCESSING, external(), internal=images.test, resamples=50)
    rows = {row.name: row for row in found.rows}
    own = classify_set(model, images.test, PREPROCESSING)
    assert rows[INTERNAL].scores["balanced_accuracy"].value == pytest.approx(own.balanced_accuracy)
    expected = found.rows[0].scores["accuracy"].value - rows[INTERNAL].scores["accuracy"].value
    assert rows[DIFFERENCE].scores["accuracy"].value == pytest.approx(expected)


def test_images_that_were_trained_on_are_left_out(model: ProtoPNet) -> None:
    seen = {IMAGES.sha256(index) for index in range(10)}
    found = evaluate_external(model, PREPROCESSING, external(), seen=seen, resamples=50)
    assert found.result.images == 29
    assert any("10 of the images" in note for note in found.notes)
    everything = {IMAGES.sha256(index) for index in range(40)}
    with pytest.raises(ProtoPFaithError, match="trained or chosen on all"):
        evaluate_external(model, PREPROCESSING, external(), seen=everything)


def test_unknown_and_missing_classes_are_sentences(model: ProtoPNet) -> None:
    found = evaluate_external(model, PREPROCESSING, external(n0="violet", n2="violet"), resamples=50)
    assert found.result.images == 37
    assert any("'violet' (2)" in note for note in found.notes)
    red = external(**{f"n{index}": "red" for index in range(40)})
    lacking = evaluate_external(model, PREPROCESSING, red, resamples=50)
    assert any("1 of 2 classes have no images here (green)" in note for note in lacking.notes)
    with pytest.raises(ProtoPFaithError, match="none of the classes"):
        evaluate_external(model, PREPROCESSING, external(**{f"n{index}": "violet" for index in range(40)}))


def test_everything_is_written(model: ProtoPNet, images: ImageData, tmp_path: Path) -> None:
    found = evaluate_external(model, PREPROCESSING, external(), internal=images.test, resamples=50)
    path = found.save(tmp_path)
    values = json.loads(path.read_text())
    assert values["images"] == 39
    assert [row["name"] for row in values["rows"]] == [row.name for row in found.rows]
    with (tmp_path / "external-clinic-images.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 40
    assert rows[39]["error"] == "39.png is broken."
    right = sum(row["class"] == row["predicted"] for row in rows)
    assert right / 39 == pytest.approx(values["accuracy"])
    assert (tmp_path / "external-clinic-compared.png").stat().st_size > 5000
    assert len(found.table().rows) == len(found.rows)
