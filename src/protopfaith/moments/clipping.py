r"""Closed forms for a Gaussian variable clipped to [low, high]: ReLU1, ReLU6, hardtanh, clamp.

The paper's appendix A.1 has them as differences of large numbers. Here the clipped variable is measured
from the bound nearer to its mean, $r = |c(Y) - \text{near}| / \sigma$, with $\beta$ how far the
mean lies beyond that bound and $\gamma = \beta + w$ how far it lies from the other one, in standard
deviations. Then, with the `tails` at $|\beta|$ and $\gamma$,

- outside ($\beta \ge 0$): $E r = h(\beta) - h(\gamma)$ and $E r^2 = k(\beta) - k(\gamma)
  - 2 w h(\gamma)$, $k(x) = E\max(Z - x, 0)^2$;
- inside: $Var = 1 - 2 (Q_\beta + Q_\gamma) + k_\beta + k_\gamma - (h_\beta - h_\gamma)^2$, and 1 far
  inside;
- bounds closer than half a deviation, where these would cancel: $E r = \int_0^w Q(\beta + t) dt$ and
  $E r^2 = \int_0^w 2 t Q(\beta + t) dt$ by four Gauss-Legendre nodes (relative error below 1e-5).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from protopfaith.moments.formulas import Pair, Slopes
from protopfaith.moments.normal import FAR, Tails, cdf, deviations, safe_deviation, tails

# Gauss-Legendre on [0, 1]
_NODES = (0.069431844202973712, 0.33000947820757187, 0.66999052179242813, 0.93056815579702629)
_WEIGHTS = (0.17392742256872693, 0.32607257743127307, 0.32607257743127307, 0.17392742256872693)


class _Place(NamedTuple):
    """Where the mean lies between the bounds, in standard deviations."""

    deviation: Tensor
    upper: Tensor  # whether the nearer bound is the upper one
    inside: Tensor
    beta: Tensor
    gamma: Tensor
    near: Tails
    far: Tails


def _place(mean: Tensor, variance: Tensor, low: float, high: float) -> _Place:
    deviation = safe_deviation(variance)
    above_low, above_high = deviations(mean - low, deviation), deviations(mean - high, deviation)
    upper = mean - low > high - mean
    beta, gamma = (
        torch.where(upper, above_high, -above_low),
        torch.where(upper, above_low, -above_high),
    )
    return _Place(deviation, upper, beta < 0, beta, gamma, tails(beta.abs()), tails(gamma))


def clip(mean: Tensor, variance: Tensor, low: float, high: float) -> Pair:
    """Mean and variance of min(max(Y, low), high)."""
    p = _place(mean, variance, low, high)
    sign = torch.where(p.upper, -1.0, 1.0)
    wide_mean = mean.clamp(low, high) + sign * variance.sqrt() * (p.near.excess - p.far.excess)
    width = p.gamma - p.beta
    distance = p.near.excess - p.far.excess
    inside = 1 - 2 * (p.near.beyond + p.far.beyond) + p.near.square + p.far.square - distance.square()
    outside = p.near.square - p.far.square - 2 * width * p.far.excess - distance.square()
    wide = variance * torch.where(p.inside, inside, outside).clamp_min(0)
    average, square = _narrow(p.beta, (high - low) / p.deviation)
    narrow = (high - low) ** 2 * (square - average.square()).clamp_min(0)
    narrow_mean = torch.where(p.upper, high, low) + sign * (high - low) * average
    is_narrow = p.deviation > 2 * (high - low)
    return torch.where(is_narrow, narrow_mean, wide_mean), torch.where(is_narrow, narrow, wide)


def clip_slopes(mean: Tensor, variance: Tensor, low: float, high: float) -> Slopes:
    r"""With g = P(low < Y < high): dE/dm = g, dE/dv = (phi_low - phi_high) / (2 sigma), dV/dm = 2 Cov(c(Y),
    c'(Y)), dV/dv = g + ((low - E) phi_low - (high - E) phi_high) / sigma (0 where v = 0)."""
    p = _place(mean, variance, low, high)
    beyond = torch.where(p.inside, 1 - p.near.beyond, p.near.beyond) - p.far.beyond
    gain = beyond.clamp_min(0)
    sign = torch.where(p.upper, -1.0, 1.0)
    distance = (-p.beta).clamp_min(0) + p.near.excess - p.far.excess  # E r
    width = torch.minimum((high - low) / p.deviation, torch.full_like(p.deviation, 2 * FAR))
    bend = p.near.density - p.far.density
    uncertain = variance > 0
    moved = 2 * sign * p.deviation * ((-p.beta - distance) * gain + bend)
    spread = gain - distance * p.near.density - (width - distance) * p.far.density
    return (
        gain,
        torch.where(uncertain, sign * bend / (2 * p.deviation), 0.0),
        moved * uncertain,
        torch.where(uncertain, spread, 0.0),
    )


def _narrow(beta: Tensor, width: Tensor) -> Pair:
    """E (r / w) and E (r / w)^2."""
    average = torch.zeros_like(beta)
    square = torch.zeros_like(beta)
    width = width.clamp_max(0.5)  # beyond, the result is not used
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        beyond = cdf(-(beta + node * width))
        average = average + weight * beyond
        square = square + 2 * node * weight * beyond
    return average, square
