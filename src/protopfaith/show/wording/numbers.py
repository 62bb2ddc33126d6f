"""Shares, probabilities and measured values as people read them."""

from __future__ import annotations

import math


def percent(share: float) -> str:
    """A share in percent, with as many digits as it takes to tell it from nothing and from everything.

    >>> percent(0.25), percent(0.9999), percent(float("nan"))
    ('25%', 'more than 99.9%', 'an unknown share')
    """
    if not math.isfinite(share):
        return "an unknown share"
    digits = 0 if share >= 0.1 or share == 0 else 1 if share >= 0.01 else 2
    if 0.99 <= share < 1:  # 100% beside another class's 0.4% would not add up
        digits = 1
    if 0 < share < 1e-4:
        return "less than 0.01%"
    if 1 - 5e-4 < share < 1:
        return "more than 99.9%"
    return f"{100 * share:.{digits}f}%"


def asked(precision: float) -> str:
    """A precision as it was asked for.

    >>> asked(0.05), asked(1e-6)
    ('±5%', '±0.0001%')
    """
    return f"±{100 * precision:.3g}%"


def with_error(value: float, error: float) -> str:
    """A value that may be positive or negative, with its standard error unless that is not known.

    >>> with_error(1.23456, 0.0789), with_error(-4, float("nan"))
    ('+1.23 ± 0.079', '-4')
    """
    return f"{value:+.3g} ± {error:.2g}" if math.isfinite(error) else f"{value:+.3g}"
