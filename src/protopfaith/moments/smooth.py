r"""Moments of a smooth activation g by quadrature, to 1e-5 of sigma (mean) and of sigma^2 (variance), at
every sigma.

Up to sigma = 1, g looks like a polynomial to the distribution: Gauss-Hermite nodes at mean + sigma z.
Beyond, the distribution looks like a polynomial to what separates g from its asymptote g0 (a step, a ReLU),
whose moments are closed forms: Gauss-Legendre nodes over the bump b = g - g0, which vanishes beyond
`reach`: E g = E g0 + E b, Var g = Var g0 + 2 Cov(g0, b) + Var b.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from protopfaith.moments.normal import cdf, density, root

COUNT = 20


class Asymptote(NamedTuple):
    """What a smooth activation looks like from afar, and its moments."""

    function: Callable[[Tensor], Tensor]
    moments: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    reach: float


def smooth(
    g: Callable[[Tensor], Tensor], asymptote: Asymptote, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean and variance of g(Y), Y Gaussian."""
    dtype = mean.dtype
    if dtype in (torch.float16, torch.bfloat16):
        mean, variance = mean.float(), variance.float()
    near = _near(g, mean, variance.clamp(max=1.0))
    far = _far(g, asymptote, mean, variance.clamp(min=1.0))
    is_near = variance <= 1
    return tuple(torch.where(is_near, n, f).to(dtype) for n, f in zip(near, far, strict=True))  # type: ignore[return-value]


def _near(g: Callable[[Tensor], Tensor], mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    nodes, weights = _hermite()
    deviation = root(variance)
    center = g(mean)
    change = [g(mean + deviation * z) - center for z in nodes]
    average = sum(w * c for w, c in zip(weights, change, strict=True))
    spread = sum(w * (c - average).square() for w, c in zip(weights, change, strict=True))
    return center + average, spread  # type: ignore[return-value]


def _far(
    g: Callable[[Tensor], Tensor], asymptote: Asymptote, mean: Tensor, variance: Tensor
) -> tuple[Tensor, Tensor]:
    deviation = variance.sqrt()
    mean0, variance0 = asymptote.moments(mean, variance)
    bump, product = torch.zeros_like(mean), torch.zeros_like(mean)
    for y, weight in zip(*_legendre(asymptote.reach), strict=True):
        point = torch.tensor(y, dtype=torch.float64)
        straight = float(asymptote.function(point))
        b = float(g(point)) - straight
        mass = weight * density((y - mean) / deviation) / deviation
        bump = bump + mass * b
        product = product + mass * (b * b + 2 * b * straight)
    spread = variance0 + product - 2 * mean0 * bump - bump.square()
    return mean0 + bump, spread.clamp_min(0)


def step_moments(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """P(Y > 0) and P (1 - P)."""
    a = mean / variance.sqrt()
    return cdf(a), cdf(a) * cdf(-a)


def relu_moments(mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor]:
    """The textbook form, which autograd can follow; precise enough for variances of at least 1."""
    deviation = variance.sqrt()
    a = mean / deviation
    p, q, d = cdf(a), cdf(-a), density(a)
    return mean * p + deviation * d, (variance * (p + a * a * p * q + a * d * (q - p) - d * d)).clamp_min(0)


def step(y: Tensor) -> Tensor:
    return (y > 0).to(y.dtype)


@cache
def _hermite() -> tuple[list[float], list[float]]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(COUNT)
    return nodes.tolist(), (weights / weights.sum()).tolist()


@cache
def _legendre(reach: float) -> tuple[list[float], list[float]]:
    """Nodes on both sides of the kink at zero."""
    nodes, weights = np.polynomial.legendre.leggauss(COUNT)
    right, half = reach * (nodes + 1) / 2, weights * reach / 2
    return np.concatenate([-right, right]).tolist(), np.concatenate([half, half]).tolist()
