"""Drawing in bird coordinates: shapes become antialiased pixels and a map of which part is where."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

Color = tuple[int, int, int]
OVERSAMPLING = 4


def hsv(hue: float, saturation: float, value: float) -> Color:
    """An 8-bit color; hue wraps around, the others are clipped to 0..1."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, min(max(saturation, 0), 1), min(max(value, 0), 1))
    return round(255 * red), round(255 * green), round(255 * blue)


def mix(first: Color, second: Color, share: float) -> Color:
    """`share` of the second color in the first."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


@dataclass(frozen=True)
class Pose:
    """Where the bird sits: center and unit in pixels of the finished image, rotation in degrees."""

    x: float
    y: float
    unit: float
    rotation: float
    flipped: bool

    def matrix(self) -> np.ndarray:
        """2 x 2, bird coordinates (x forward, y down) to pixels."""
        angle = math.radians(self.rotation)
        cosine, sine = math.cos(angle), math.sin(angle)
        mirror = -1.0 if self.flipped else 1.0
        return self.unit * np.array([[mirror * cosine, -mirror * sine], [sine, cosine]])

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return points @ self.matrix().T + (self.x, self.y)


class Canvas:
    """Paints at `OVERSAMPLING` times the size; `finish` averages down, so that edges are smooth."""

    def __init__(self, background: Image.Image, pose: Pose):
        self.size = background.width
        side = self.size * OVERSAMPLING
        self.pose = pose
        self.image = background.resize((side, side), Image.Resampling.BILINEAR)
        self.parts = Image.new("L", (side, side), 0)
        self._image = ImageDraw.Draw(self.image)
        self._parts = ImageDraw.Draw(self.parts)

    def fill(self, points: np.ndarray, color: Color, part: int) -> None:
        """Fills the outline `points` (n x 2, bird coordinates)."""
        # Whole numbers at four times the size: rounding differences between machines cannot reach the raster.
        corners = [tuple(p) for p in np.rint(self.pose(points) * OVERSAMPLING).astype(int).tolist()]
        self._image.polygon(corners, fill=color)
        self._parts.polygon(corners, fill=part)

    def finish(self) -> tuple[Image.Image, np.ndarray]:
        """The RGB image and the part map (uint8, H x W) at their real size."""
        middle = OVERSAMPLING // 2
        part_map = np.asarray(self.parts)[middle::OVERSAMPLING, middle::OVERSAMPLING]
        return self.image.reduce(OVERSAMPLING), part_map.copy()


def ellipse(x: float, y: float, a: float, b: float, degrees: float = 0.0, *, n: int = 36) -> np.ndarray:
    """The outline of an ellipse with half axes a and b."""
    angles = np.linspace(0, 2 * math.pi, n, endpoint=False)
    turn = math.radians(degrees)
    u, v = a * np.cos(angles), b * np.sin(angles)
    return np.stack(
        [x + u * math.cos(turn) - v * math.sin(turn), y + u * math.sin(turn) + v * math.cos(turn)], axis=1
    )


def smooth(corners: Sequence[tuple[float, float]], steps: int = 6) -> np.ndarray:
    """A closed Catmull-Rom curve through the corners."""
    p = np.asarray(corners, dtype=float)
    return _catmull_rom(np.roll(p, 1, 0), p, np.roll(p, -1, 0), np.roll(p, -2, 0), steps)


def stroke(path: Sequence[tuple[float, float]], widths: Sequence[float], steps: int = 6) -> np.ndarray:
    """The outline of a curve through `path` whose full width goes through `widths`."""
    p = np.column_stack([np.asarray(path, dtype=float), np.asarray(widths, dtype=float)])
    padded = np.vstack([2 * p[0] - p[1], p, 2 * p[-1] - p[-2]])
    curve = _catmull_rom(padded[:-3], padded[1:-2], padded[2:-1], padded[3:], steps)
    curve = np.vstack([curve, p[-1]])
    direction = np.gradient(curve[:, :2], axis=0)
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-9)
    normal = np.stack([-direction[:, 1], direction[:, 0]], axis=1) * np.maximum(curve[:, 2:], 0) / 2
    return np.vstack([curve[:, :2] + normal, (curve[:, :2] - normal)[::-1]])


def _catmull_rom(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, steps: int) -> np.ndarray:
    t = (np.arange(steps) / steps)[None, :, None]
    a, b, c, d = (points[:, None, :] for points in (a, b, c, d))
    curve = 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
    return curve.reshape(-1, curve.shape[-1])
