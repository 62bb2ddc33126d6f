from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.shapley import Players
from protopfaith.show.outlines import LabelGrid


def painted(path: str, shape: tuple[int, ...]) -> np.ndarray:
    """What a path covers, by the rule of even and odd crossings: slow and obvious."""
    covered = np.zeros(shape, dtype=bool)
    for loop in path.split("z")[:-1]:
        points, x, y = [], 0, 0
        for letter, numbers in re.findall(r"([MHV])([\d ]+)", loop):
            if letter == "M":
                x, y = (int(number) for number in numbers.split())
            elif letter == "H":
                x = int(numbers)
            else:
                y = int(numbers)
            points.append((x, y))
        for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
            if x0 == x1:  # every pixel to the right of a vertical line changes sides
                covered[min(y0, y1) : max(y0, y1), x0:] ^= True
    return covered


@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
def test_outlines_cover_exactly_their_regions(seed: int, height: int, width: int, n: int) -> None:
    labels = np.random.default_rng(seed).integers(0, n, (height, width))
    _, labels = np.unique(labels, return_inverse=True)
    labels = labels.reshape(height, width)
    grid = LabelGrid.of(labels)
    for label, path in enumerate(grid.outlines()):
        assert np.array_equal(painted(path, labels.shape), labels == label)
    some = np.arange(labels.max() + 1) % 2 == 0
    assert np.array_equal(painted(grid.outline(some), labels.shape), some[labels])


def test_windows_are_one_cell_each() -> None:
    grid = LabelGrid.of(Players.windows((224, 224), 16).labels.numpy())
    assert grid.labels.shape == (14, 14)
    assert grid.outlines()[15] == "M16 16H32V32H16z"
