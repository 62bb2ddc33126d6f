"""Numbers of any scale as 8 bits."""

from __future__ import annotations

import numpy as np

STRIP = 256  # rows at a time: as float64 the whole takes many times its size


def finite_range(values: np.ndarray) -> tuple[float, float]:
    """The smallest and the largest of the values that are numbers.

    Args:
        values: of a picture

    Raises:
        ValueError: if none of them is

    >>> finite_range(np.array([3.0, np.nan, 1.0, np.inf]))
    (1.0, 3.0)
    """
    if values.dtype.kind != "f":
        return float(values.min()), float(values.max())
    finite = np.isfinite(values)
    if not finite.any():
        raise ValueError("none of its pixels is a number")
    low, high = np.min(values, where=finite, initial=np.inf), np.max(values, where=finite, initial=-np.inf)
    return float(low), float(high)


def spread(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Scales `low` to 0 and `high` to 255; what lies beyond is cut off, what is no number becomes 0.

    Args:
        values: rows of a picture
        low: becomes black
        high: becomes white

    >>> spread(np.array([[100, 350, 600, 1100]]), 100, 1100).tolist()
    [[0, 64, 128, 255]]
    """
    result = np.empty(values.shape, np.uint8)
    for start in range(0, len(values), STRIP):
        strip = values[start : start + STRIP].astype(np.float64) / 2  # halves: no difference is infinite
        scaled = (strip - low / 2) / max(high / 2 - low / 2, float(np.finfo(np.float64).tiny))
        result[start : start + STRIP] = np.round(255 * np.clip(np.nan_to_num(scaled, nan=0.0), 0, 1))
    return result
