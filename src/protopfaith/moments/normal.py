r"""Tails of the standard normal distribution that keep their digits in float32.

With $\varphi$ the density, $I_{-1} = \varphi$ and $I_n(x) = \int_x^\infty
I_{n-1}(t)\,dt$, so that $I_0(x) = Q(x) = P(Z > x)$, $I_1(x) = E\max(Z - x, 0)$ and $2
I_2(x) = E\max(Z - x, 0)^2$. The textbook forms $I_1 = \varphi - xQ$ and $2 I_2 = (1 + x^2) Q -
x\varphi$ cancel in the tail. The ratios $R_n = I_n / I_{n-1}$ obey $R_n = 1 / (x + (n+1)
R_{n+1})$, in which every term is positive: from $R_2$ all others follow without losing a digit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

FAR = 40.0
"""Standard deviations beyond which every tail is zero, in float32 and float64 alike."""

# R_2(x) for x >= 0 as a ratio of polynomials (lowest power first), relative error 1.3e-7: a minimax fit to
# 60-digit values. All coefficients are positive, so that Horner's scheme does not cancel either.
_NUMERATOR = (291.893006, 185.264246, 59.6929359, 10.8878341, 1.0)
_DENOMINATOR = (465.793789, 455.154729, 218.134274, 62.6874837, 10.8878821, 1.0)
_DENSITY_AT_ZERO = 1 / math.sqrt(2 * math.pi)


class Tails(NamedTuple):
    r"""What rules need at $x \ge 0$.

    Args:
        density: phi(x)
        beyond: Q(x) = P(Z > x)
        excess: h(x) = E max(Z - x, 0) = phi(x) - x Q(x)
        square: E max(Z - x, 0)^2 = (1 + x^2) Q(x) - x phi(x)
    """

    density: Tensor
    beyond: Tensor
    excess: Tensor
    square: Tensor


def tails(x: Tensor) -> Tails:
    """Density and tail integrals at `x` in [0, FAR], each to a few units in the last place (float64:
    1e-9)."""
    second = _second_ratio(x)
    first = 1 / (x + 2 * second)
    density = _DENSITY_AT_ZERO * torch.exp(-0.5 * x * x)
    beyond = density / (x + first)
    excess = beyond * first
    return Tails(density, beyond, excess, 2 * excess * second)


def cdf(x: Tensor) -> Tensor:
    """Phi(x), accurate relative to its size even in the left tail."""
    return 0.5 * torch.special.erfc(x * -math.sqrt(0.5))


def density(x: Tensor) -> Tensor:
    """phi(x)"""
    return _DENSITY_AT_ZERO * torch.exp(-0.5 * x * x)


def safe_deviation(variance: Tensor) -> Tensor:
    """A standard deviation that is never zero, to divide by: zero variance then means infinitely many
    deviations."""
    return variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()


def deviations(distance: Tensor, deviation: Tensor) -> Tensor:
    """distance / deviation, within [-FAR, FAR]."""
    return (distance / deviation).clamp(-FAR, FAR)


def signed_deviations(distance: Tensor, variance: Tensor) -> Tensor:
    """As `deviations`, for formulas that autograd follows: nothing infinite takes part in them."""
    deviation = safe_deviation(variance)
    far = distance.abs() >= FAR * deviation
    ratio = torch.where(far, 0.0, distance) / torch.where(far, 1.0, deviation)
    return torch.where(far, FAR * distance.sign(), ratio)


def root(variance: Tensor) -> Tensor:
    """The square root, whose derivative at zero is 0 by convention."""
    positive = variance > 0
    return torch.where(positive, torch.where(positive, variance, torch.ones_like(variance)).sqrt(), 0.0)


def _second_ratio(x: Tensor) -> Tensor:
    if x.dtype == torch.float64:
        mills = math.sqrt(math.pi / 2) * torch.special.erfcx(x * math.sqrt(0.5))
        return 0.5 * (1 / (1 / mills - x) - x)
    return _polynomial(x, _NUMERATOR) / _polynomial(x, _DENOMINATOR)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    value = x + coefficients[-2]  # both polynomials are monic
    for coefficient in coefficients[-3::-1]:
        value = value * x + coefficient
    return value
