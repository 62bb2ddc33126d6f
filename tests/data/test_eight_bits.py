from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from protopfaith.data.eight_bits import STRIP, finite_range, spread

NUMBERS = st.floats(-1e6, 1e6) | st.sampled_from([np.nan, np.inf, -np.inf])


def slowly(value: float, low: float, high: float) -> int:
    if np.isnan(value) or value <= low:
        return 0
    return 255 if value >= high else round(255 * (value - low) / (high - low))


@given(arrays(np.float64, (3, 4), elements=NUMBERS))
def test_the_range_is_that_of_numbers_alone(values: np.ndarray) -> None:
    numbers = [float(value) for value in values.flat if np.isfinite(value)]
    if numbers:
        assert finite_range(values) == (min(numbers), max(numbers))
    else:
        with pytest.raises(ValueError, match="none of its pixels"):
            finite_range(values)


@given(arrays(np.float64, (3, 4), elements=NUMBERS), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_every_pixel_is_scaled_and_cut_off_by_itself(values: np.ndarray, low: float, width: float) -> None:
    high = low + width
    expected = np.array([[slowly(value, low, high) for value in row] for row in values])
    assert np.abs(spread(values, low, high).astype(int) - expected).max() <= 1  # halves may be rounded


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.float32])
def test_range_and_type_do_not_matter_to_the_picture(dtype: type) -> None:
    values = np.arange(100, dtype=dtype).reshape(10, 10)
    assert finite_range(values) == (0, 99)
    assert np.array_equal(spread(values, 0, 99), np.round(values * (255 / 99)).astype(np.uint8))


def test_strips_are_seamless() -> None:
    values = np.random.default_rng(0).random((2 * STRIP + 3, 5))
    whole = spread(values, 0.2, 0.8)
    rows = [spread(values[row : row + 1], 0.2, 0.8) for row in range(len(values))]
    assert np.array_equal(whole, np.concatenate(rows))


def test_one_value_alone_is_black() -> None:
    assert spread(np.full((2, 2), 7), 7, 7).max() == 0


def test_the_widest_range_of_numbers_is_a_picture() -> None:
    assert spread(np.array([[-1.7e308, 0.0, 1.7e308]]), -1.7e308, 1.7e308).tolist() == [[0, 128, 255]]
