"""Moment rules of Q, so that a whole prototype network runs on random variables; importing this registers
them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import linear, normalize

from protopfaith.dtypes import unrounded
from protopfaith.moments import Gaussian, rule
from protopfaith.network.distances import minimum_over_positions, squared_distances, unit_vectors


@rule(squared_distances)
def distance_moments(function: Callable, z: Gaussian, prototypes: Tensor) -> Gaussian:
    r"""y = m - p, summed over channels: mean = sum(v) + sum(y^2); variance = 2 sum(v^2) + 4 sum(v y^2).

    Both expand into 1x1 convolutions, $\sum v y^2 = \sum v m^2 - 2 \sum v m p + \sum v p^2$, so no B
    x P x L x h x w tensor arises; shifting by the mean prototype keeps the three terms small. Common
    factors F pass by the gain 2 y, and add to the variance $2 tr(\Sigma^2) + 4 y^T \Sigma y$ what
    lies off the diagonal.
    """
    if isinstance(z, Directions):
        return z.distances(prototypes)
    mean, variance = z.moments
    distances = squared_distances(mean, prototypes) + variance.sum(1, keepdim=True)
    prototypes = prototypes.to(distances.dtype)
    center = prototypes.detach().mean(0)
    shifted, p = mean.to(distances.dtype) - center[:, None, None], prototypes - center
    own = z.own_variance.to(distances.dtype)
    with unrounded(mean.device.type):
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


class Directions(Gaussian):
    r"""Random vectors of length 1, which know more than each channel's variance: what moves them turns them
    around the mean direction u.

    A small change dz of a vector turns its direction by $(dz - u (u \cdot dz)) / n$, with $n^2 = E|z|^2$ (not
    $|m|^2$: that bounds it where the spread is large). `turning` are the variances of dz / n that no common
    factor accounts for.
    """

    direction: Tensor
    turning: Tensor

    @classmethod
    def of(cls, z: Gaussian) -> Directions:
        """There is no closed form. This is exact to first order in the variances and to second order in the
        mean, exact without variance, and of mean square length 1, as directions are."""
        mean, variance = (part.to(torch.promote_types(part.dtype, torch.float32)) for part in z.moments)
        total = mean.square().sum(1, keepdim=True) + variance.sum(1, keepdim=True)
        total = total.clamp_min(torch.finfo(mean.dtype).tiny)
        direction = normalize(mean, dim=1)
        turning = z.own_variance.to(mean.dtype) / total
        # Each channel loses the share that lies along the mean, and gains that of the others.
        along = direction.square()
        others = ((along * turning).sum(1, keepdim=True) - along * turning).clamp_min(0)
        spread = turning * (1 - along).square() + along * others
        factors = None
        if z.factors is not None:
            given = z.factors.to(mean.dtype) / total.sqrt()
            factors = given - direction * (direction * given).sum(2, keepdim=True)
            spread = spread + factors.square().sum(0)
        # The mean points to u; its square length is what the variances leave of 1.
        length = (1 - spread.sum(1, keepdim=True)).clamp_min(0).sqrt()
        made = cls.trusted(direction * length, spread, factors)
        assert isinstance(made, Directions)
        made.direction, made.turning = direction, turning
        return made

    def distances(self, prototypes: Tensor) -> Gaussian:
        r"""The squared distance of vectors of length 1 is linear in them: $1 - 2 p \cdot y + |p|^2$, so its
        variance is 4 times that of $p \cdot y$, with $q = p - u (u \cdot p)$ in the place of p."""
        mean, p = self.moments[0], prototypes.to(self.moments[0].dtype)
        turning, direction = self.turning, self.direction
        with unrounded(mean.device.type):
            means = (1 + p.square().sum(1)[:, None, None] - 2 * _product(mean, p)).clamp_min(0)
            cosine = _product(direction, p)
            spread = _product(turning, p.square()) - 2 * cosine * _product(turning * direction, p)
            spread = spread + cosine.square() * (turning * direction.square()).sum(1, keepdim=True)
            spread = 4 * spread.clamp_min(0)
            if self.factors is None:
                return Gaussian.trusted(means, spread)
            slopes = -2 * _product(self.factors.flatten(0, 1), p).unflatten(0, self.factors.shape[:2])
            return Gaussian.trusted(means, spread + slopes.square().sum(0), slopes)


@rule(unit_vectors)
def direction_moments(function: Callable, z: Gaussian) -> Gaussian:
    """The direction of a random vector; see `Directions`."""
    return Directions.of(z)


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
