"""Shares and probabilities as people read them."""

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
