"""Damaged pictures that Pillow reads, and sound ones that look as if they were damaged."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protopfaith.data import read_image
from protopfaith.errors import ProtoPFaithError


def photograph(side: int = 96) -> Image.Image:
    """Smooth shapes with some noise, so that no format makes it tiny."""
    down, across = np.mgrid[:side, :side]
    random = np.random.default_rng(0).integers(0, 20, (side, side, 3))
    colors = np.stack([down * 2, across * 2, (down + across)], 2) + random
    return Image.fromarray(colors.clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def half_written(content: bytes) -> bytes:
    return content[: len(content) // 2] + bytes(len(content) - len(content) // 2)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("png", {}),
        ("png", {"save_all": True, "append_images": [photograph().rotate(90)]}),
        ("jpeg", {}),
        ("jpeg", {"progressive": True}),
        ("jpeg", {"optimize": True}),
        ("jpeg", {"restart_marker_rows": 1}),
    ],
)
def test_a_file_whose_second_half_was_never_written_is_told(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    path = tmp_path / f"x.{kind}"
    path.write_bytes(half_written(encoded(photograph(), kind, **options)))
    with pytest.raises(ProtoPFaithError, match=r"x\.\w+ cannot be read \(its content is damaged, as by"):
        read_image(path)


def test_one_flipped_bit_of_png_pixels_is_told(tmp_path: Path) -> None:
    content = bytearray(encoded(photograph(), "png", compress_level=0))
    content[len(content) // 2] ^= 1
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(ProtoPFaithError, match="a checksum in it does not fit"):
        read_image(tmp_path / "x.png")


@pytest.mark.parametrize("side", [1, 8, 96, 1000])
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("png", {}),
        ("png", {"compress_level": 0}),
        ("jpeg", {}),
        ("jpeg", {"optimize": True}),
        ("jpeg", {"progressive": True, "optimize": True, "quality": 1}),
        ("jpeg", {"restart_marker_blocks": 1, "quality": 100}),
    ],
)
@pytest.mark.parametrize("after", [b"", bytes(5000), b"\xff\xda" * 9])
def test_sound_files_are_read_whatever_follows_them(
    tmp_path: Path, side: int, kind: str, options: dict[str, Any], after: bytes
) -> None:
    for number, image in enumerate([Image.new("L", (side, side)), photograph(side)]):
        path = tmp_path / f"{number}.{kind}"
        path.write_bytes(encoded(image, kind, **options) + after)
        assert read_image(path).size == (side, side)


def test_a_png_file_without_its_end_has_all_of_its_pixels(tmp_path: Path) -> None:
    content = encoded(photograph(), "png")
    (tmp_path / "x.png").write_bytes(content[: content.index(b"IEND") - 4])
    assert np.array_equal(np.asarray(read_image(tmp_path / "x.png")), np.asarray(photograph()))
