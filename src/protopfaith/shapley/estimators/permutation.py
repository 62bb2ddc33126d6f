"""Antithetic permutations: players join one after the other, in a random order and in its reverse."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.game import Game
from protopfaith.shapley.sampling import Estimate, Generators, Sampler, State, by_sampling, checked_state

PRIOR = 4.0  # samples that the mean variance of all players counts for in that of each


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
        fresh = {"pairs": torch.zeros((), device=game.device), "sum": zeros, "squares": zeros.clone()}
        state = checked_state(state, fresh)
        self.pairs, self.sum, self.squares = state["pairs"], state["sum"], state["squares"]

    def round(self, game: Game, most: int, generators: Generators) -> int:
        pairs = most // self.smallest
        for number in range(int(self.pairs), int(self.pairs) + pairs):
            order = torch.randperm(game.n_players, generator=generators[number], device=game.device)
            contribution = pair_contribution(game, order)
            self.sum += contribution
            self.squares += contribution.square()
        self.pairs = self.pairs + pairs
        return pairs * self.smallest

    def estimate(self, game: Game) -> Estimate:
        mean = self.sum / self.pairs
        # One pair tells nothing about its error: 0 / 0, NaN.
        spread = (self.squares / self.pairs - mean.square()).clamp_min(0) * self.pairs / (self.pairs - 1)
        variances = moderated(spread, mean, float(self.pairs) - 1) / self.pairs
        gap = mean.sum(1) - game.total
        return Estimate(mean, variances, gap, max(float(self.pairs) - 1, 1.0))

    def state(self) -> dict[str, Tensor]:
        return {"pairs": self.pairs, "sum": self.sum, "squares": self.squares}


def moderated(variances: Tensor, means: Tensor, degrees: float) -> Tensor:
    """Each variance as if `PRIOR` more samples had shown what all players together make likely.

    A player that made no difference in any order so far (a voter that was never pivotal) has no spread, but
    may make one in the next: the mean variance. And players with large values vary more than others: the
    variance over the squared value, from all players.
    """
    level = variances.mean(1, keepdim=True)
    relative = level / means.square().mean(1, keepdim=True).clamp_min(1e-300)
    likely = torch.maximum(level, relative * means.square())
    return (degrees * variances + PRIOR * likely) / (degrees + PRIOR)


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
