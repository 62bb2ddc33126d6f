"""Masks mark the same pixels however they were saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data.marks import marks, read_marks
from protopfaith.errors import ProtoPFaithError

THERE = np.array([[True, False, False], [True, True, False]])


def saved_as(kind: str) -> Image.Image:
    """A mask as programs write them, of small numbers: labels, not brightness."""
    ones = THERE.astype(np.uint8)
    if kind == "palette":
        image = Image.fromarray(ones, "P")
        image.putpalette([0, 0, 0, 0, 0, 1])
        return image
    if kind == "alpha":  # white where the object is, and nothing elsewhere
        return Image.fromarray(np.stack([np.full_like(ones, 255), ones * 255], 2), "LA")
    if kind == "transparent color":
        image = Image.fromarray(np.where(THERE, 1, 9).astype(np.uint8))
        image.info["transparency"] = 9
        return image
    if kind == "blue":
        return Image.fromarray(np.stack([0 * ones, 0 * ones, ones], 2))
    return {
        "1 bit": Image.fromarray(THERE),
        "8 bits": Image.fromarray(ones),
        "16 bits": Image.fromarray(ones.astype(np.uint16)),
        "float": Image.fromarray(ones.astype(np.float32) / 1000),
    }[kind]


@pytest.mark.parametrize(
    "kind", ["1 bit", "8 bits", "16 bits", "float", "palette", "alpha", "transparent color", "blue"]
)
def test_a_mask_marks_the_same_however_it_is_saved(kind: str, tmp_path: Path) -> None:
    image = saved_as(kind)
    assert np.array_equal(marks(image), THERE)
    path = tmp_path / ("mask.tiff" if kind == "float" else "mask.png")
    image.save(path)
    assert np.array_equal(read_marks(path), THERE)


def test_pixels_that_are_no_numbers_and_files_that_are_no_pictures(tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="NaN"):
        marks(Image.fromarray(np.full((2, 2), np.nan, np.float32)))
    (tmp_path / "mask.png").write_text("no picture")
    with pytest.raises(ProtoPFaithError, match=r"mask\.png cannot be read"):
        read_marks(tmp_path / "mask.png")
    with pytest.raises(ProtoPFaithError, match="There is no image"):
        read_marks(tmp_path / "none.png")


def photograph(black: float) -> np.ndarray:
    """Colors of every kind, the first rows black."""
    pixels = np.random.default_rng(0).integers(1, 256, (40, 40, 3), dtype=np.uint8)
    pixels[: round(40 * black)] = 0
    return pixels


def test_a_photograph_marks_nothing_but_an_object_cut_out_of_it_does() -> None:
    with pytest.raises(ProtoPFaithError, match="this is a photograph"):
        marks(Image.fromarray(photograph(0)))
    assert np.array_equal(marks(Image.fromarray(photograph(0.25))), photograph(0.25).any(2))
    assert marks(Image.fromarray(photograph(0)).convert("L")).all()  # soft edges have many grays
    labels = np.random.default_rng(0).integers(1, 7, (40, 40, 3), dtype=np.uint8) * 40
    assert marks(Image.fromarray(labels)).all()


@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_negative_numbers_mark_nothing(kind: type) -> None:
    values = np.array([[0, 1], [2, -1]], kind)
    with pytest.raises(ProtoPFaithError, match="negative"):
        marks(Image.fromarray(values))
