from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from protopfaith.data.birds.canvas import Canvas, Pose, ellipse, hsv, mix, smooth, stroke


def test_colors() -> None:
    assert hsv(0, 0, 1) == (255, 255, 255)
    assert hsv(0, 1, 1) == (255, 0, 0)
    assert mix((0, 0, 0), (200, 100, 50), 0.5) == (100, 50, 25)


def test_an_ellipse_has_the_area_of_one() -> None:
    x, y = ellipse(3, 4, 2, 1, degrees=30, n=400).T
    area = 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))
    assert area == pytest.approx(2 * np.pi, rel=1e-3)
    assert (x.mean(), y.mean()) == pytest.approx((3, 4), abs=1e-6)


def test_smooth_outlines_pass_through_their_corners() -> None:
    corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    outline = smooth(corners)
    for corner in corners:
        assert np.abs(outline - corner).sum(1).min() < 1e-9


def test_a_stroke_is_as_wide_as_it_should_be() -> None:
    outline = stroke([(0.0, 0.0), (5.0, 0.0), (10.0, 0.0)], [2.0, 2.0, 2.0])
    assert np.abs(outline[:, 1]).max() == pytest.approx(np.abs(outline[:, 1]).min())


def test_an_empty_canvas_has_no_parts() -> None:
    image, part_map = Canvas(Image.new("RGB", (32, 32)), Pose(16, 16, 6, 0, False)).finish()
    assert image.size == (32, 32)
    assert not part_map.any()
