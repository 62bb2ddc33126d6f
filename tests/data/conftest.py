"""Every test has a cache folder of its own, and images to put on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data import images


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("PROTOPFAITH_CACHE", str(folder))
    monkeypatch.setattr(images, "_said", set())
    return folder


@pytest.fixture
def picture() -> Callable[..., Image.Image]:
    """A random picture, another one for each number."""

    def make(number: int, size: tuple[int, int] = (20, 14), mode: str = "RGB") -> Image.Image:
        rng = np.random.default_rng(number)
        pixels = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        return Image.fromarray(pixels).convert(mode)

    return make


@pytest.fixture
def save(picture: Callable[..., Image.Image]) -> Callable[..., Path]:
    """Writes picture `number` to a path and creates its folders."""

    def write(path: Path, number: int, size: tuple[int, int] = (20, 14)) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(number, size).save(path)
        return path

    return write
