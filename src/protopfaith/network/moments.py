"""Moment rules of Q, so that a whole prototype network runs on random variables; importing this registers
them."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import linear

from protopfaith.dtypes import full_precision
from protopfaith.moments import Gaussian, rule
from protopfaith.network.distances import minimum_over_positions, squared_distances


@rule(squared_distances)
def distance_moments(function: Callable, z: Gaussian, prototypes: Tensor) -> Gaussian:
    r"""y = m - p, summed over channels: mean = sum(v) + sum(y^2); variance = 2 sum(v^2) + 4 sum(v y^2).

    Both expand into 1x1 convolutions, $\sum v y^2 = \sum v m^2 - 2 \sum v m p + \sum v p^2$, so no B
    x P x L x h x w tensor arises; shifting by the mean prototype keeps the three terms small. Common
    factors F pass by the gain 2 y, and add to the variance $2 tr(\Sigma^2) + 4 y^T \Sigma y$ what
    lies off the diagonal.
    """
    mean, variance = z.moments
    distances = squared_distances(mean, prototypes) + variance.sum(1, keepdim=True)
    prototypes = prototypes.to(distances.dtype)
    center = prototypes.detach().mean(0)
    shifted, p = mean.to(distances.dtype) - center[:, None, None], prototypes - center
    own = z.own_variance.to(distances.dtype)
    with full_precision(mean.device.type):
        along = (own * shifted.square()).sum(1, keepdim=True)
        along = along - 2 * _product(own * shifted, p) + _product(own, p.square())
        spread = 4 * along.clamp_min(0) + 2 * variance.square().sum(1, keepdim=True)
        if z.factors is None:
            return Gaussian.trusted(distances, spread)
        factors = z.factors.to(distances.dtype)
        slopes = 2 * (
            (shifted * factors).sum(2, keepdim=True)
            - _product(factors.flatten(0, 1), p).unflatten(0, factors.shape[:2])
        )
        return Gaussian.trusted(
            distances, spread + slopes.square().sum(0) + 2 * _off_diagonal(factors), slopes
        )


@rule(minimum_over_positions)
def minimum_moments(function: Callable, maps: Gaussian) -> Gaussian:
    """Minus the maximum of the negatives, by a balanced tree."""
    return maps.amin((-2, -1))


def _product(x: Tensor, prototypes: Tensor) -> Tensor:
    """(B, L, h, w) times (P, L): (B, P, h, w)."""
    flat = linear(x.flatten(2).transpose(1, 2), prototypes)
    return flat.transpose(1, 2).unflatten(2, x.shape[2:])


def _off_diagonal(factors: Tensor) -> Tensor:
    """The sum over channels l != m of (sum_k F_kl F_km)^2, for factors (K, B, L, h, w): (B, 1, h, w)."""
    vectors = factors.permute(1, 3, 4, 0, 2)  # (B, h, w, K, L)
    gram = vectors @ vectors.transpose(-1, -2)
    diagonal = vectors.square().sum(-2).square().sum(-1)
    return (gram.square().sum((-2, -1)) - diagonal).clamp_min(0).unsqueeze(1)
