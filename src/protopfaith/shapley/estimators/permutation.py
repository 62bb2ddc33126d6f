"""Antithetic permutations: players join one after the other, in a random order and in its reverse."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.game import Game
from protopfaith.shapley.noise import Noisy
from protopfaith.shapley.sampling import Estimate, Generators, Sampler, State, by_sampling, checked_state

POWERS = ("sum", "squares", "cubes", "fourths")


@ESTIMATORS.register("permutation", description="estimated by hiding random sets of regions")
@by_sampling
def permutation(game: Game, state: State) -> Sampler:
    r"""Mean of the marginal contributions $v(S \cup i) - v(S)$ along random orders of the players.

    Each order comes with its reverse, which cancels the odd part of the error; a pair costs $2(n-1)$
    evaluations and sums to the total exactly. Standard errors come from the spread between pairs.
    """
    return _Permutations(game, state)


class _Permutations:
    def __init__(self, game: Game, state: State):
        self.smallest = self.least = 2 * (game.n_players - 1)
        zeros = torch.zeros(game.n_outputs, game.n_players, dtype=torch.float64, device=game.device)
        # Powers of what pairs differ from the first one by: what is the same in all leaves no rounding.
        fresh = {name: zeros.clone() for name in ("first", *POWERS)}
        self.kept = checked_state(state, {"pairs": torch.zeros((), device=game.device), **fresh})

    def round(self, game: Game, most: int, generators: Generators) -> int:
        pairs, have = most // self.smallest, int(self.kept["pairs"])
        for number in range(have, have + pairs):
            order = torch.randperm(game.n_players, generator=generators[number], device=game.device)
            contribution = pair_contribution(game, order)
            if number == 0:
                self.kept["first"] = contribution
            for power, name in enumerate(POWERS, 1):
                self.kept[name] += (contribution - self.kept["first"]) ** power
        self.kept["pairs"] = self.kept["pairs"] + pairs
        return pairs * self.smallest

    def estimate(self, game: Game) -> Estimate:
        pairs = self.kept["pairs"].double()
        found = from_powers([self.kept[name] / pairs for name in POWERS], pairs).plus(self.kept["first"])
        degrees = float(pairs) - 1  # one pair tells nothing about its error: 0 / 0, NaN
        variances = found.moderated(likely_variances(found), degrees)
        return Estimate(found.values, variances, found.values.sum(1) - game.total, max(degrees, 1.0))

    def state(self) -> dict[str, Tensor]:
        return self.kept


def from_powers(powers: Sequence[Tensor], count: Tensor) -> Noisy:
    """What `count` samples say, from the means of their first four powers, where the mean is not small."""
    mean, square, cube, fourth = powers
    second = (square - mean.square()).clamp_min(0)
    central = fourth - 4 * mean * cube + 3 * mean.square() * (square + second)
    doubts = (central - second.square()).clamp_min(0) / count / (count - 1).square()
    return Noisy(mean, second / (count - 1), doubts)


def likely_variances(found: Noisy) -> Tensor:
    """What all players together make likely for the variance of each, `(outputs, n)`: the largest of three.

    Their mean; more for players with large values, which vary as much more; and what one contribution would
    add that is as large as those that make most of the variances. For a player that made no difference in any
    order so far (a voter that was never pivotal) may make one in the next.
    """
    mean = found.variances.mean(1, keepdim=True)
    relative = mean / found.values.square().mean(1, keepdim=True).clamp_min(1e-300)
    rare = found.doubts.sum(1, keepdim=True) / found.variances.sum(1, keepdim=True).clamp_min(1e-300)
    return torch.maximum(torch.maximum(mean, rare), relative * found.values.square())


def pair_contribution(game: Game, order: Tensor) -> Tensor:
    """Marginal contributions `(outputs, n)`, averaged over `order` and its reverse."""
    n = len(order)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(n, device=order.device)
    steps = torch.arange(1, n, device=order.device)[:, None]
    forward = rank < steps  # row k: the first k + 1 players are present
    backward = rank >= n - steps
    values = game(torch.cat([forward, backward])).double()
    ends = game.empty.double()[None], game.grand.double()[None]
    rising = torch.cat([ends[0], values[: n - 1], ends[1]]).diff(dim=0)
    falling = torch.cat([ends[0], values[n - 1 :], ends[1]]).diff(dim=0)
    return 0.5 * (rising[rank] + falling[n - 1 - rank]).T
