r"""Closed forms for one-sided, two-sided and pairwise maxima of Gaussian variables, and their slopes.

All take and return tensors of one shape. With $\sigma^2$ = `variance`, `x` is a distance from the
kink in standard deviations, never negative, and $Q, h, \varphi$ are the `tails` there. Written
this way zero variance gives the plain function exactly, nothing cancels, and no variance can be negative.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.moments.normal import Tails, deviations, safe_deviation, tails

Pair = tuple[Tensor, Tensor]
Slopes = tuple[Tensor, Tensor, Tensor, Tensor]


def relu(mean: Tensor, variance: Tensor) -> Pair:
    r"""mean = max(m, 0) + sigma h; variance = v (1 - Q - x h - h^2) above zero and v (E max(Z - x, 0)^2 -
    h^2) below it."""
    a = deviations(mean, safe_deviation(variance))
    t = tails(a.abs())
    share = torch.where(a > 0, winner_share(a.abs(), t), loser_share(t))
    return mean.clamp_min(0) + variance.sqrt() * t.excess, variance * share


def relu_slopes(mean: Tensor, variance: Tensor) -> Slopes:
    r"""dE/dm = Phi(a); dE/dv = phi / (2 sigma); dV/dm = 2 E Phi(-a); dV/dv = Phi(a) - E phi / sigma (0
    where v = 0)."""
    deviation = safe_deviation(variance)
    a = deviations(mean, deviation)
    t = tails(a.abs())
    positive = torch.where(a > 0, 1 - t.beyond, t.beyond)
    negative = torch.where(a > 0, t.beyond, 1 - t.beyond)
    standard = a.clamp_min(0) + t.excess
    uncertain = variance > 0
    return (
        positive,
        torch.where(uncertain, t.density / (2 * deviation), 0.0),
        2 * deviation * standard * negative * uncertain,
        torch.where(uncertain, positive - standard * t.density, 0.0),
    )


def leaky_relu(mean: Tensor, variance: Tensor, slope: float) -> Pair:
    """s y + (1 - s) relu(y), whose covariance is Phi(a) v."""
    gain = relu_slopes(mean, variance)[0]
    rectified, spread = relu(mean, variance)
    share = slope**2 * variance + (1 - slope) ** 2 * spread + 2 * slope * (1 - slope) * gain * variance
    return slope * mean + (1 - slope) * rectified, share.clamp_min(0)


def leaky_relu_slopes(mean: Tensor, variance: Tensor, slope: float) -> Slopes:
    """From those of relu, with d(Phi v)/dm = sigma phi and d(Phi v)/dv = Phi - a phi / 2."""
    gain, curvature, spread_mean, spread_variance = relu_slopes(mean, variance)
    deviation = safe_deviation(variance)
    a = deviations(mean, deviation)
    density = tails(a.abs()).density
    uncertain = variance > 0
    one, cross = (1 - slope) ** 2, 2 * slope * (1 - slope)
    return (
        slope + (1 - slope) * gain,
        (1 - slope) * curvature,
        one * spread_mean + cross * deviation * density * uncertain,
        (slope**2 + one * spread_variance + cross * (gain - 0.5 * a * density)) * uncertain,
    )


def maximum(mean1: Tensor, variance1: Tensor, mean2: Tensor, variance2: Tensor) -> Pair:
    r"""Clark's moments of the larger of two independent variables, x = \|m1 - m2\| / s, s^2 = v1 + v2: mean
    = max(m1, m2) + s h; variance = v_w (1 - Q - x h - h^2) + v_l (E max(Z - x, 0)^2 - h^2), w the one with
    the larger mean."""
    together = variance1 + variance2
    x = deviations(mean1 - mean2, safe_deviation(together)).abs()
    t = tails(x)
    first = mean1 > mean2
    winner, loser = torch.where(first, variance1, variance2), torch.where(first, variance2, variance1)
    mean = torch.maximum(mean1, mean2) + together.sqrt() * t.excess
    return mean, winner * winner_share(x, t) + loser * loser_share(t)


def maximum_slopes(
    mean1: Tensor, variance1: Tensor, mean2: Tensor, variance2: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    r"""With P_i the probability that i is larger and r_i = v_i / s^2: dE/dm_i = P_i, dE/dv_i = phi / (2 s),
    dV/dm_i = 2 (P_i (m_i - E) + s r_i phi), dV/dv_i = P_i + phi ((m_i - E) / s - a_i r_i), a_i the signed
    distance."""
    together = variance1 + variance2
    deviation = safe_deviation(together)
    a = deviations(mean1 - mean2, deviation)
    t = tails(a.abs())
    uncertain = together > 0
    curvature = torch.where(uncertain, t.density / (2 * deviation), 0.0)
    slopes = []
    for signed, variance in ((a, variance1), (-a, variance2)):
        wins = torch.where(signed > 0, 1 - t.beyond, t.beyond)
        below = t.excess + (-signed).clamp_min(0)  # (E - m_i) / s
        ratio = torch.where(uncertain, variance / deviation.square(), 0.5)
        moved = 2 * deviation * (ratio * t.density - wins * below)
        spread = wins - t.density * (below + signed * ratio)
        slopes.append((wins, curvature, moved * uncertain, torch.where(uncertain, spread, 0.0)))
    (m1, v1, n1, w1), (m2, v2, n2, w2) = slopes
    return m1, v1, m2, v2, n1, w1, n2, w2


def winner_share(x: Tensor, t: Tails) -> Tensor:
    """Of the variance of the variable with the larger mean, what the maximum keeps: 1 - Q - x h - h^2."""
    return 1 - t.beyond - t.excess * (x + t.excess)


def loser_share(t: Tails) -> Tensor:
    """Of the variance of the one with the smaller mean, what the maximum takes: E max(Z - x, 0)^2 - h^2."""
    return t.square - t.excess.square()
