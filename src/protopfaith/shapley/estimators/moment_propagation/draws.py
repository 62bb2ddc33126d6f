r"""Ways to draw who is present: coalitions of one size without replacement, or everybody independently.

Both give mean and variance of a first-layer unit in closed form from the sums over players of its
contributions c and c^2. With K directions in player space they also give common factors $F_{ku} =
\sigma \sum_i d_{ki} c_{ui}$, from which the covariance of two units, $\sigma^2 \sum_i c_{ui} c_{wi}$,
is known: see `sketch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments.gaussian import Gaussian
from protopfaith.shapley.estimators.moment_propagation.coloring import spread_apart
from protopfaith.shapley.estimators.moment_propagation.presence import Contributions


@dataclass
class FixedSize:
    r"""Coalitions of `sizes` (B,) out of the n = N - 1 players other than `players` (B,), drawn without
    replacement; that player itself is present where `inside` (B,).

    With sums over the others, mean = $\frac{d}{n} \sum c$ and variance = $\frac{d (n - d)}{n -
    1} \left(\frac{1}{n} \sum c^2 - (\frac{1}{n} \sum c)^2\right)$. No count of pixels or units is divided
    by, so a player may cover a whole receptive field. `pixels`: as if every pixel and channel were a
    player of its own in the first layer (what the authors' code in effect does).
    """

    players: Tensor
    inside: Tensor
    sizes: Tensor
    count: int
    pixels: bool = False
    directions: Tensor | None = None

    def __len__(self) -> int:
        return len(self.players)

    def moments(self, contributions: Contributions) -> Gaussian:
        unique, place = self.players.unique(return_inverse=True)
        own = contributions.of(unique)
        rest = contributions.total - own
        column = (-1, *(1,) * (own.dim() - 1))
        fraction = (self.sizes / max(self.count - 1, 1)).to(own.dtype).reshape(column)
        spread = fraction * (1 - fraction)
        mean = contributions.start + rest[place] * fraction + own[place] * self.inside.reshape(column)
        variance = self._unit_variance(contributions, unique, own, rest)[place] * spread
        factors = None
        if self.directions is not None and self.count > 2:
            factors = self._along(contributions, unique, own, rest)[:, place]
            factors = factors * (spread * ((self.count - 1) / (self.count - 2))).sqrt()
        return _gaussian(mean, variance, factors)

    def _unit_variance(
        self, contributions: Contributions, players: Tensor, own: Tensor, rest: Tensor
    ) -> Tensor:
        """The variance over d/n (1 - d/n), for each of the players that are left out, (m, units)."""
        entries, squares = self._others(contributions, players, own)
        n = entries.to(own.dtype).reshape(-1, *(1,) * (own.dim() - 1))
        return ((squares - rest.square() / n.clamp_min(1)) * (n / (n - 1).clamp_min(1))).clamp_min(0)

    def _others(self, contributions: Contributions, players: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
        """How many others there are without each player (m,), and their sums of squares (m, units)."""
        if self.pixels:
            entries = contributions.change.numel() - contributions.entries_of(players)
            return entries, contributions.pixel_squares - contributions.pixel_squares_of(players)
        return torch.full_like(players, self.count - 1), contributions.squares - own.square()

    def _along(self, contributions: Contributions, players: Tensor, own: Tensor, rest: Tensor) -> Tensor:
        """Sums along the directions over the others' contributions less their average, (K, m, units)."""
        directions: Tensor = self.directions  # type: ignore[assignment]
        column = (len(directions), -1, *(1,) * (own.dim() - 1))
        weights = directions[:, players].reshape(column)
        average = rest / (self.count - 1)
        sums = directions.sum(1).reshape(column) - weights
        return contributions.along(directions)[:, None] - weights * own - sums * average


class Tap(NamedTuple):
    """Moments of a first layer as they entered the network, to differentiate by.

    Tensors, not the Gaussian that holds them: an in-place activation gives that one others.
    """

    contributions: Contributions
    mean: Tensor
    variance: Tensor
    factors: Tensor | None


@dataclass
class Independent:
    r"""Every player present with `probability` q (B,), independently: mean = q sum(c), variance = q (1 -
    q) sum(c^2).

    What the first layers made of it is kept in `taps`, so that derivatives with respect to the presence
    of each player follow from derivatives with respect to mean, variance and factors: see `derivatives`.
    """

    probability: Tensor
    directions: Tensor | None = None
    taps: list[Tap] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.probability)

    def moments(self, contributions: Contributions) -> Gaussian:
        start = contributions.start
        column = (-1, *(1,) * (start.dim() - 1))
        q = self.probability.to(start.dtype).reshape(column)
        mean = start + q * contributions.total
        variance = q * (1 - q) * contributions.squares
        factors = None
        if self.directions is not None:
            factors = contributions.along(self.directions)[:, None] * (q * (1 - q)).sqrt()
        result = _gaussian(mean, variance, factors)
        if torch.is_grad_enabled():
            self.taps.append(Tap(contributions, *result.moments, result.factors))
            for leaf in self.leaves():
                leaf.requires_grad_()
        return result

    def leaves(self) -> list[Tensor]:
        """The tensors to differentiate by, in the order that `derivatives` takes."""
        return [leaf for tap in self.taps for leaf in tap[1:] if isinstance(leaf, Tensor)]

    def summed(self, gradients: Sequence[Tensor], weights: Tensor) -> list[Tensor]:
        """Gradients by the `leaves`, summed over the batch with `weights` (r, B) and with what each
        probability makes of them: (r, units) for every leaf."""
        sums, rest = [], iter(gradients)
        q = self.probability.to(weights)
        for tap in self.taps:
            sums.append(_weighted(weights, next(rest)))
            sums.append(_weighted(weights * (1 - 2 * q), next(rest)))
            if tap.factors is not None:
                slope = (1 - 2 * q) / (2 * (q * (1 - q)).clamp_min(1e-12).sqrt())
                sums.append(_weighted(weights * slope, next(rest).transpose(0, 1)))
        return sums

    def derivatives(self, summed: Sequence[Tensor]) -> Tensor:
        r"""Derivatives by the presence of every player, (r, n), from `summed` gradients:
        $\sum_u c_{ui}\, \partial/\partial\mu_u + (1 - 2q) \sum_u c_{ui}^2\, \partial/\partial v_u$."""
        total: Tensor | float = 0.0
        rest = iter(summed)
        for tap in self.taps:
            total = total + tap.contributions.pulled_back(next(rest))
            total = total + tap.contributions.squares_pulled_back(next(rest))
            if tap.factors is not None:
                factors = next(rest)  # (r, K, units)
                pulled = tap.contributions.pulled_back(factors.flatten(0, 1))
                total = total + (pulled.unflatten(0, factors.shape[:2]) * self.directions).sum(1)
        return total  # type: ignore[return-value]


def _weighted(weights: Tensor, gradients: Tensor) -> Tensor:
    """sum_b w_rb g_b, with g (B, ...): (r, ...)"""
    flat = weights.to(gradients.dtype) @ gradients.reshape(len(gradients), -1)
    return flat.reshape(len(weights), *gradients.shape[1:])  # one number for each image has no dimension more


def sketch(labels: Tensor, count: int, seed: int = 0) -> Tensor:
    r"""`count` directions in player space, (K, n), along which common factors follow the players.

    Every player belongs to one direction, with a random sign: players of one direction lie as far apart as
    possible, so units that share a player share its factor, and only units that see several players of one
    direction see their contributions mixed, with signs that cancel on average (a count sketch of the
    covariance). With as many directions as players the covariance of a first layer is exact; more are not
    made.
    """
    if count < 1:
        raise ProtoPFaithError(f"Common factors were asked for with {count} of them; give at least one.")
    n = int(labels.max()) + 1
    group = torch.arange(n) if count >= n else spread_apart(labels, count).cpu()
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (n,), generator=generator) * 2.0 - 1
    directions = torch.zeros(int(group.max()) + 1, n)
    directions[group, torch.arange(n)] = signs
    return directions


def _gaussian(mean: Tensor, variance: Tensor, factors: Tensor | None) -> Gaussian:
    """Channels last on a GPU, where convolutions are fastest so; the layers that follow keep it."""
    if mean.is_cuda and mean.dim() == 4:
        mean, variance = (x.contiguous(memory_format=torch.channels_last) for x in (mean, variance))
    return Gaussian.trusted(mean, variance, factors)
