from __future__ import annotations

import numpy as np

from protopfaith.data.birds.canvas import Canvas, Pose
from protopfaith.data.birds.scene import paint_background, paint_surroundings


def test_a_background_follows_from_its_generator_alone() -> None:
    first, again, other = (
        np.asarray(paint_background(np.random.default_rng(seed), 48)) for seed in (1, 1, 2)
    )
    assert first.shape == (48, 48, 3)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_surroundings_are_no_part_of_the_bird() -> None:
    rng = np.random.default_rng(0)
    canvas = Canvas(paint_background(rng, 48), Pose(24, 25, 9, 0, False))
    paint_surroundings(canvas, rng)
    assert not canvas.finish()[1].any()
