"""Closed forms for functions of a Gaussian variable that are made of polynomials: hardswish."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from protopfaith.moments.formulas import Pair
from protopfaith.moments.normal import FAR, cdf, density


def hardswish(mean: Tensor, variance: Tensor) -> Pair:
    """Moments of x clamp(x + 3, 0, 6) / 6, which is 0 below -3, x (x + 3) / 6 up to 3, and x above.

    With z the standard normal variable and x = m + s z, each piece is a polynomial of z, and the moments of z
    between two bounds are closed forms. Pieces are measured from the function's value at m, in float64, since
    their squares would cancel.
    """
    dtype = mean.dtype
    m, known = mean.double(), variance > 0
    v = torch.where(known, variance, torch.ones_like(variance)).double()
    s, center = v.sqrt(), F.hardswish(m)
    low, high = (-3 - m) / s, (3 - m) / s
    middle = ((m.square() + 3 * m) / 6 - center, s * (2 * m + 3) / 6, v / 6)
    bounds = (low.clamp(-FAR, FAR), high.clamp(-FAR, FAR))
    between, above = _powers(*bounds, count=5), _powers(bounds[1], torch.full_like(m, FAR), count=3)
    below = cdf(bounds[0])
    first = -center * below + _expected(middle, between) + _expected((m - center, s), above)
    second = center.square() * below + _expected(_squared(middle), between)
    second = second + _expected(_squared((m - center, s)), above)
    spread = (second - first.square()).clamp_min(0)
    plain = F.hardswish(mean)
    return torch.where(known, (center + first).to(dtype), plain), torch.where(known, spread.to(dtype), 0.0)


def _powers(low: Tensor, high: Tensor, count: int) -> list[Tensor]:
    """E z^k for z between two bounds (and 0 elsewhere), k = 0, 1, ...: (k - 1) E z^(k-2) + what the density
    leaves at the bounds."""
    right = low > 0  # from the side where tails keep their digits
    mass = torch.where(right, cdf(-low) - cdf(-high), cdf(high) - cdf(low))
    at_low, at_high = density(low), density(high)
    found = [mass, at_low - at_high]
    for power in range(2, count):
        at_low, at_high = at_low * low, at_high * high
        found.append((power - 1) * found[power - 2] + at_low - at_high)
    return found


def _expected(polynomial: Sequence[Tensor], powers: Sequence[Tensor]) -> Tensor:
    first, *others = (factor * power for factor, power in zip(polynomial, powers, strict=False))
    return sum(others, first)


def _squared(polynomial: Sequence[Tensor]) -> list[Tensor]:
    """The coefficients of a polynomial's square, lowest power first."""
    square: list[Tensor] = []
    for i, a in enumerate(polynomial):
        for j, b in enumerate(polynomial):
            if i + j < len(square):
                square[i + j] = square[i + j] + a * b
            else:
                square.append(a * b)
    return square
