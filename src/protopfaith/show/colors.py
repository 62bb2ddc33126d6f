"""Two color maps: one with a sign, centered at zero, that color-blind readers can tell apart; one without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

WARM, COOL = "#c4440b", "#1f6fb4"
# From cool to warm through white, lightness falling alike on both sides: orange and blue differ for all
# common kinds of color blindness, and stay apart in print.
STOPS = ("#0a3f78", COOL, "#8fbfe3", "#ffffff", "#f7b488", WARM, "#8f2a04")
# For ProtoPNet's maps, which have no sign: lightness alone says the size.
PLAIN_STOPS = ("#14213d", "#3d4b66", "#76736b", "#b8a65a", "#ffe45e")


def diverging() -> Colormap:
    """The color map of our maps, for matplotlib."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("cool_warm", STOPS)


def overlay(values: np.ndarray, scale: float) -> np.ndarray:
    """Evidence of any shape as RGBA in 0..1: the color says the sign, color and opacity say the size.

    Zero is clear, and even the strongest color is not quite opaque: the image must stay recognizable.

    >>> overlay(np.array([0.0, 1.0]), 1.0)[:, 3].tolist()
    [0.0, 0.75]
    """
    share = np.clip(np.asarray(values, dtype=float) / scale, -1, 1)
    color = between(STOPS, 0.5 + 0.5 * np.sign(share) * (0.45 + 0.55 * np.abs(share)))
    opacity = np.where(share == 0, 0.0, 0.1 + 0.65 * np.abs(share) ** 0.6)
    return np.concatenate([color, opacity[..., None]], axis=-1)


def plain_colors(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Values of any shape in the colors without a sign, RGB in 0..1."""
    return between(PLAIN_STOPS, np.clip((values - low) / max(high - low, 1e-12), 0, 1))


def hexadecimal(color: np.ndarray) -> str:
    """RGB in 0..1 as a style sheet writes it.

    >>> hexadecimal(np.array([1.0, 0.5, 0.0]))
    '#ff8000'
    """
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in color[:3])


def rgb(pixels: Tensor) -> np.ndarray:
    """An image (uint8, C x H x W) as H x W x 3 in 0..1."""
    array = pixels.numpy().transpose(1, 2, 0) / 255
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def between(stops: tuple[str, ...], share: np.ndarray) -> np.ndarray:
    """Colors along `stops`, for shares in 0..1: (..., 3)."""
    table = np.array([[int(stop[i : i + 2], 16) / 255 for i in (1, 3, 5)] for stop in stops])
    places = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(share, places, table[:, channel]) for channel in range(3)], axis=-1)
