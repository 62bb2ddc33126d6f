"""What is behind the bird: sky, foliage, dusk or snow, with clouds, blurred leaves and a perch."""

from __future__ import annotations

import numpy as np
from PIL import Image

from protopfaith.data.birds.canvas import Canvas, Color, ellipse, hsv, mix, stroke

# Hue, saturation and value at the top and at the bottom, and how much the soft blobs stand out.
SCENES: dict[str, tuple[tuple[float, float, float], tuple[float, float, float], float]] = {
    "sky": ((0.57, 0.42, 0.92), (0.55, 0.12, 0.98), 14.0),
    "foliage": ((0.27, 0.35, 0.72), (0.31, 0.48, 0.55), 34.0),
    "forest": ((0.36, 0.36, 0.44), (0.3, 0.4, 0.31), 26.0),
    "dusk": ((0.74, 0.28, 0.78), (0.05, 0.38, 0.95), 14.0),
    "meadow": ((0.52, 0.2, 0.92), (0.22, 0.42, 0.74), 22.0),
    "autumn": ((0.11, 0.34, 0.9), (0.06, 0.5, 0.7), 30.0),
    "snow": ((0.6, 0.1, 0.86), (0.58, 0.05, 0.97), 10.0),
}


def paint_background(rng: np.random.Generator, size: int) -> Image.Image:
    """A soft landscape, RGB, size x size."""
    top, bottom, contrast = SCENES[list(SCENES)[rng.integers(len(SCENES))]]
    shift = rng.normal(0, 0.02)
    first, last = (
        np.array(hsv(h + shift, s, v * rng.uniform(0.9, 1.04)), float) for h, s, v in (top, bottom)
    )
    height = np.linspace(0, 1, size)[:, None, None]
    picture = first * (1 - height) + last * height + _blobs(rng, size, contrast)
    picture = picture + rng.normal(0, rng.uniform(1, 5), (size, size, 1))
    return Image.fromarray(np.clip(np.rint(picture), 0, 255).astype(np.uint8))


def _blobs(rng: np.random.Generator, size: int, contrast: float) -> np.ndarray:
    """Two layers of smooth noise, mostly gray, a little colored."""
    total = np.zeros((size, size, 3))
    for cells, weight in ((int(rng.integers(3, 6)), 0.6), (int(rng.integers(7, 14)), 0.5)):
        grid = rng.normal(0, 1, (cells, cells, 1)) + rng.normal(0, 0.35, (cells, cells, 3))
        levels = Image.fromarray(np.clip(np.rint(128 + 40 * grid), 0, 255).astype(np.uint8))
        smooth = levels.resize((size, size), Image.Resampling.BICUBIC)
        total += weight * contrast * (np.asarray(smooth, float) - 128) / 40
    return total


def paint_surroundings(canvas: Canvas, rng: np.random.Generator) -> None:
    """Leaves at the border and a branch under the feet, in bird coordinates; both belong to no part."""
    wood = hsv(rng.uniform(0.04, 0.1), rng.uniform(0.25, 0.55), rng.uniform(0.3, 0.55))
    leaf = hsv(rng.uniform(0.18, 0.4), rng.uniform(0.3, 0.6), rng.uniform(0.35, 0.75))
    for _ in range(rng.integers(0, 6)):
        angle = rng.uniform(0, 2 * np.pi)
        distance = rng.uniform(2.0, 2.9)
        _leaf(canvas, rng, distance * np.cos(angle), distance * np.sin(angle), leaf)
    if rng.uniform() < 0.75:
        slope, bend = rng.normal(0, 0.12), rng.normal(0, 0.12)
        path = [(-4.0, 1.25 - 4 * slope + bend), (0.2, 1.25), (4.0, 1.25 + 4 * slope + bend)]
        width = rng.uniform(0.16, 0.3)
        canvas.fill(stroke(path, [width] * 3), wood, 0)
        light = [(x, y - 0.3 * width) for x, y in path]
        canvas.fill(stroke(light, [0.25 * width] * 3), mix(wood, (255, 240, 210), 0.3), 0)
        for x in rng.uniform(-2.2, 2.2, rng.integers(0, 3)):
            _leaf(canvas, rng, x, 1.45 + slope * x, leaf)


def _leaf(canvas: Canvas, rng: np.random.Generator, x: float, y: float, color: Color) -> None:
    shade = mix(color, (20, 30, 20), rng.uniform(0, 0.35))
    canvas.fill(
        ellipse(x, y, rng.uniform(0.2, 0.42), rng.uniform(0.09, 0.17), rng.uniform(0, 180), n=16), shade, 0
    )
