"""Heat maps over images: one diverging color map, centered at zero, that color-blind readers can tell
apart."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from torch import Tensor

from protopfaith.explanation.regions import RegionValues

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

WARM, COOL = "#c4440b", "#1f6fb4"
# From cool to warm through white, lightness falling alike on both sides: orange and blue differ for all
# common kinds of color blindness, and stay apart in print.
STOPS = ("#0a3f78", COOL, "#8fbfe3", "#ffffff", "#f7b488", WARM, "#8f2a04")


def diverging() -> Colormap:
    """The color map as matplotlib has them."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("cool_warm", STOPS)


def sequential() -> Colormap:
    """For ProtoPNet's maps, which have no sign."""
    import matplotlib as mpl

    return mpl.colormaps["cividis"]


def scale_of(maps: Iterable[RegionValues]) -> float:
    """The largest evidence, regardless of sign: both ends of a color bar that all of `maps` share."""
    return max((float(one.flat.evidence.abs().max()) for one in maps), default=0.0) or 1.0


def overlay(values: np.ndarray, scale: float) -> np.ndarray:
    """Evidence (H, W) as RGBA in 0..1: the color says the sign, color and opacity say the size; zero is
    clear."""
    share = np.clip(np.asarray(values, dtype=float) / scale, -1, 1)
    rgba = np.asarray(diverging()(0.5 + 0.5 * np.sign(share) * (0.45 + 0.55 * np.abs(share))))
    rgba[..., 3] = 0.85 * np.abs(share) ** 0.6  # never quite opaque: the image must stay recognizable
    return rgba


def gray(pixels: Tensor) -> np.ndarray:
    """An image (uint8, C x H x W) as gray levels in 0..1, a little lighter, so that colors on it stand
    out."""
    array = pixels.numpy().astype(float) / 255
    weights = np.array([0.299, 0.587, 0.114]) if len(array) == 3 else np.ones(1)
    return 0.18 + 0.74 * np.tensordot(weights, array, 1)


def rgb(pixels: Tensor) -> np.ndarray:
    """An image (uint8, C x H x W) as H x W x 3 in 0..1."""
    array = pixels.numpy().transpose(1, 2, 0) / 255
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def png(array: np.ndarray, factor: int = 1) -> bytes:
    """An array in 0..1 (gray, RGB or RGBA) as a PNG file, enlarged `factor` times without smoothing."""
    image = Image.fromarray((np.clip(array, 0, 1) * 255).round().astype(np.uint8))
    if factor > 1:
        image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def data_uri(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def hatching(labels: np.ndarray, marked: np.ndarray, factor: int) -> np.ndarray:
    """Thin diagonal lines over the marked regions, RGBA, `factor` times as large as `labels`."""
    inside = np.kron(marked[labels], np.ones((factor, factor), dtype=bool))
    rows, columns = np.indices(inside.shape)
    step = max(6, 3 * factor)
    line = inside & ((rows + columns) % step < max(1, factor // 3))
    rgba = np.zeros((*inside.shape, 4))
    rgba[line] = (0.25, 0.25, 0.25, 0.55)
    return rgba
