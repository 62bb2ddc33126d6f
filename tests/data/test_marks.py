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
