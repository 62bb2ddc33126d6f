"""Owen sampling where the variance is, of what a surrogate leaves over, shrunk towards a smooth map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from protopfaith.shapley.attribution import redistribute
from protopfaith.shapley.densities import anchored_mean, hat_functions, membership_weights, remove_mean
from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.estimators.adaptive_owen import surrogate as surrogates
from protopfaith.shapley.estimators.adaptive_owen.coalitions import allocate, masks_of_sizes, stratified_sizes
from protopfaith.shapley.estimators.adaptive_owen.smoothing import Neighborhood, shrink
from protopfaith.shapley.estimators.exact import or_exact
from protopfaith.shapley.game import Game
from protopfaith.shapley.sampling import Estimate, Sampler, State, blocks, by_sampling

KEPT = 2048  # samples that the surrogate learns from (the fit costs their cube); later ones are only added up
PILOT = 1024  # samples, at most, of uniform sizes before the first allocation
ROUND = 1 << 14  # later samples of a round at most: progress is reported between rounds


@ESTIMATORS.register("adaptive_owen", description="estimated by hiding random sets of regions")
@or_exact
@by_sampling
def adaptive_owen(
    game: Game, state: State, *, allocation: bool = True, surrogate: bool = True, shrinkage: bool = True
) -> Sampler:
    """The default. Owen sampling (see `owen`) with three additions:

    1. Sizes of coalitions are drawn where the variance is, as measured so far.
    2. A surrogate with known Shapley values (`surrogate.py`) is fitted to the samples; only what it leaves
       over on samples that it has not seen is estimated by sampling. The first 2,048 samples are
       predicted leaving themselves out; for later ones the surrogate is fixed, so they need no memory.
    3. The values are shrunk towards a smooth map (`smoothing.py`), and the gap to the total is
       redistributed in proportion to the variance that is left.

    Steps 1 and 2 keep the estimate unbiased. Step 3 trades a little bias for much less error: its standard
    errors hold for the players of a map on average, while the highest peaks are drawn down a little.
    `shrinkage=False` (or `surrogate`, `allocation`) leaves it out. Games with so few players that
    the budget covers all coalitions are solved exactly.
    """
    return _Adaptive(game, state, allocation=allocation, surrogate=surrogate, shrinkage=shrinkage)


class _Adaptive:
    smallest, least = 1, 64

    def __init__(self, game: Game, state: State, *, allocation: bool, surrogate: bool, shrinkage: bool):
        self.kept = state or nothing_kept(game)
        self.allocation, self.shrinkage = allocation, shrinkage
        self.settings = surrogates.SETTINGS if surrogate else ()
        self.near = Neighborhood.of(game.players)
        self._learned: _Learned | None = None

    def round(self, game: Game, most: int, generator: torch.Generator) -> int:
        have = len(self.kept["masks"])
        if have >= KEPT:
            return self._add_up(game, most, generator)
        if have == 0:
            count = min(most, max(256, min(PILOT, most // 4)))
            chance = torch.full_like(self.kept["chance"], 1 / (game.n_players - 1))
        else:  # at most as many again as there are: the allocation improves with every round
            count = min(most, KEPT - have, max(have, 512))
            chance = self._allocation(game)
        for size in blocks(count, game.n_players):
            masks = masks_of_sizes(stratified_sizes(chance, size, generator), game.n_players, generator)
            self.kept["masks"] = torch.cat([self.kept["masks"], masks])
            self.kept["values"] = torch.cat([self.kept["values"], game(masks)])
        self.kept["chance"] = self.kept["chance"] + count * chance
        return count

    def estimate(self, game: Game) -> Estimate:
        learned = self._first(game)
        values, variances = learned.values, learned.variances
        if float(self.kept["count"]) > 1:
            values, variances = self._combined(learned)
        if self.shrinkage:
            values, variances = shrink(values, variances, self.near)
        gap = values.sum(1) - game.total
        values, variances = redistribute(values, variances, game.total)
        return Estimate(values, variances, gap)

    def state(self) -> dict[str, Tensor]:
        return self.kept

    def _weights(self, masks: Tensor, chance: Tensor) -> Tensor:
        """What a sample's residual counts for each player, sizes being drawn by `chance` instead of
        uniformly.
        """
        n = masks.shape[1]
        return membership_weights(masks) / (n * chance[masks.sum(1) - 1])[:, None]

    def _allocation(self, game: Game) -> Tensor:
        """Chances of the sizes, by the measured variance: (n-1,)."""
        masks = self.kept["masks"]
        if not self.allocation:
            return torch.full_like(self.kept["chance"], 1 / (game.n_players - 1))
        residuals = remove_mean(anchored_mean(game), masks.double().mean(1), self.kept["values"].double())
        chance = self.kept["chance"] / len(masks)
        sizes = masks.sum(1)
        p = sizes.double() / game.n_players
        variance = residuals.square() / (p * (1 - p) * chance[sizes - 1])[:, None]
        variance = (variance / variance.sum(0).clamp_min(1e-300)).mean(1)
        return allocate(variance, sizes, game.n_players)

    def _first(self, game: Game) -> _Learned:
        """The kept samples' unbiased estimate, worked out again only when there are more of them."""
        if self._learned is None or self._learned.count != len(self.kept["masks"]):
            self._learned = self._learn(game)
        return self._learned

    def _learn(self, game: Game) -> _Learned:
        """Each kept sample is predicted by a surrogate that has not seen it; what is left is averaged."""
        masks, values = self.kept["masks"], self.kept["values"].double()
        mean = anchored_mean(game)
        residuals = remove_mean(mean, masks.double().mean(1), values)
        weights = self._weights(masks, self.kept["chance"] / len(masks))
        share = game.total[:, None] / game.n_players
        importance = self._importance(residuals, weights, share)
        model, left = surrogates.fit(masks, residuals, importance, self.near.correlation, self.settings)
        known = model.shapley() + share
        return _Learned(len(masks), *_mean_and_variance(left, weights, known), mean, model, known)

    def _importance(self, residuals: Tensor, weights: Tensor, share: Tensor) -> Tensor:
        """The square that each player's effect is expected to have, averaged over outputs, (n,)."""
        rough, _ = shrink(*_mean_and_variance(residuals, weights, share), self.near, rough=True)
        return (rough.square() / rough.square().sum(1, keepdim=True).clamp_min(1e-300)).mean(0)

    def _add_up(self, game: Game, most: int, generator: torch.Generator) -> int:
        learned, chance = self._first(game), self._allocation(game)
        curve = torch.linalg.solve(learned.mean["left"], learned.mean["right"])
        count = min(most, ROUND)
        for size in blocks(count, game.n_players, game.batch_size):
            sizes = stratified_sizes(chance, size, generator)
            masks = masks_of_sizes(sizes, game.n_players, generator)
            predicted = hat_functions(sizes.double() / game.n_players) @ curve + learned.model(masks)
            sums, squares = weighted_sums(masks, sizes, game(masks).double() - predicted, chance)
            self.kept["sum"] += sums
            self.kept["squares"] += squares
            self.kept["count"] += size
        return count

    def _combined(self, learned: _Learned) -> tuple[Tensor, Tensor]:
        """The estimates from kept and from later samples, weighted by their variances for each output; their
        errors are uncorrelated."""
        count = self.kept["count"]
        mean = self.kept["sum"] / count
        spread = (self.kept["squares"] / count - mean.square()).clamp_min(0) / (count - 1)
        first, second = learned.variances.mean(1, keepdim=True), spread.mean(1, keepdim=True)
        share = torch.where(first + second > 0, first / (first + second), 1.0)
        combined = (1 - share) * learned.values + share * (learned.known + mean)
        return combined, (1 - share).square() * learned.variances + share.square() * spread


@dataclass(frozen=True, eq=False)
class _Learned:
    """What `count` kept samples say: an estimate, and what stays fixed for the samples after them."""

    count: int
    values: Tensor  # (outputs, n)
    variances: Tensor
    mean: dict[str, Tensor]  # normal equations of the function's mean over density
    model: surrogates.Surrogate
    known: Tensor  # (outputs, n): the part of the values that the surrogate and the total make


def nothing_kept(game: Game) -> dict[str, Tensor]:
    """The state before the first sample."""
    n, outputs, device = game.n_players, game.n_outputs, game.device
    kind: dict[str, Any] = {"dtype": torch.float64, "device": device}
    return {
        "masks": torch.zeros(0, n, dtype=torch.bool, device=device),
        "values": torch.zeros(0, outputs, dtype=game.grand.dtype, device=device),
        "chance": torch.zeros(n - 1, **kind),  # of each size 1 ... n-1, summed over the kept samples
        "count": torch.zeros((), **kind),
        "sum": torch.zeros(outputs, n, **kind),
        "squares": torch.zeros(outputs, n, **kind),
    }


def _mean_and_variance(residuals: Tensor, weights: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    count = len(residuals)
    mean = residuals.T @ weights / count
    square = residuals.square().T @ weights.square() / count
    return known + mean, (square - mean.square()).clamp_min(0) / (count - 1)


def weighted_sums(masks: Tensor, sizes: Tensor, residuals: Tensor, chance: Tensor) -> tuple[Tensor, Tensor]:
    r"""Sums over the samples of r w_i and of (r w_i)^2, each (outputs, n), with the weights w_i = (x_i - p)
    / (p (1 - p) n chance).

    Memberships are 0 or 1, so x_i^2 = x_i: with c the factor of x_i - p both are sums of multiples of x_i,
    $\sum rc\, x_i - \sum rcp$ and $\sum r^2 c^2 (1 - 2p)\, x_i + \sum r^2 c^2 p^2$. One
    matrix product gives them, and no weights are written down.
    """
    n = masks.shape[1]
    p = (sizes.double() / n)[:, None]
    first = residuals / (p * (1 - p) * (n * chance[sizes - 1])[:, None])
    second = first.square()
    factors = torch.cat([first, second * (1 - 2 * p)], 1)
    sums, squares = (factors.T @ masks.double()).chunk(2)
    return sums - (first * p).sum(0)[:, None], squares + (second * p * p).sum(0)[:, None]
