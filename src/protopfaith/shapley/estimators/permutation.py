"""Antithetic permutations: players join one after the other, in a random order and in its reverse."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.shapley.averages import Averages
from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.game import Game
from protopfaith.shapley.sampling import Sampler, State, by_sampling


@ESTIMATORS.register("permutation", description="estimated by hiding random sets of regions")
@by_sampling
def permutation(game: Game, state: State) -> Sampler:
    r"""Mean of the marginal contributions $v(S \cup i) - v(S)$ along random orders of the players.

    Each order comes with its reverse, which cancels the odd part of the error; a pair costs $2(n-1)$
    evaluations and sums to the total exactly. Standard errors come from the spread between pairs.
    """

    def pair(generator: torch.Generator) -> Tensor:
        order = torch.randperm(game.n_players, generator=generator, device=game.device)
        return pair_contribution(game, order)

    return Averages(game, state, pair, evaluations=2 * (game.n_players - 1))


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
