"""Kernel regression: the linear game nearest to the real one, with paired sampling."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.game import Game
from protopfaith.shapley.sampling import (
    DRAWN,
    Estimate,
    Generators,
    Sampler,
    State,
    blocks,
    by_block,
    by_sampling,
    checked_state,
)

GROUPS = 16  # of samples, for the jackknife
MOST_PLAYERS = 2048  # the normal equations are GROUPS x n x n


@ESTIMATORS.register("kernel", description="estimated by hiding random sets of regions")
@by_sampling
def kernel(game: Game, state: State) -> Sampler:
    r"""Weighted least squares of v(S) - v(empty) on membership, constrained to sum to the total.

    Coalition sizes s are drawn uniformly (the leverage of a coalition depends on its size little), each
    coalition with its complement; the weights $1 / (s (n - s))$ then make the fit the Shapley
    kernel's. Standard errors come from a jackknife over groups of samples, since the misfit is
    interaction, not noise of equal size.
    """
    if game.n_players > MOST_PLAYERS:
        raise ProtoPFaithError(
            f"Kernel regression of {game.n_players} players needs too large a matrix; take at most "
            f"{MOST_PLAYERS} players, or the estimator 'owen'."
        )
    return _Regression(game, state)


class _Regression:
    def __init__(self, game: Game, state: State):
        n = game.n_players
        self.smallest = 2 * GROUPS
        # A complement tells what its coalition told: without a group, there must be as many pairs as players.
        least = max(2 * (n + 2), 4 * GROUPS) * GROUPS / (GROUPS - 1)
        self.least = math.ceil(least / self.smallest) * self.smallest
        kind: dict[str, Any] = {"dtype": torch.float64, "device": game.device}
        fresh = {
            "pairs": torch.zeros((), **kind),
            "left": torch.zeros(GROUPS, n, n, **kind),
            "right": torch.zeros(GROUPS, n, game.n_outputs, **kind),
        }
        state = checked_state(state, fresh)
        self.pairs, self.left, self.right = state["pairs"], state["left"], state["right"]

    def round(self, game: Game, most: int, generators: Generators) -> int:
        count = most // self.smallest * self.smallest
        for size in blocks(count, game.n_players, self.smallest):
            x = paired_coalitions(int(self.pairs), size // 2, game.n_players, generators)
            self.pairs = self.pairs + size // 2
            y = game(x).double() - game.empty.double()
            s = x.sum(1).double()
            weights = 1 / (s * (game.n_players - s))
            # Pair k goes to group k mod GROUPS, both of its halves.
            grouped = torch.arange(size, device=game.device).reshape(-1, GROUPS).T
            xs, ys = x.double()[grouped], y[grouped]
            weighted = (xs * weights[grouped][..., None]).transpose(1, 2)
            self.left += weighted @ xs
            self.right += weighted @ ys
        return count

    def estimate(self, game: Game) -> Estimate:
        left, right = self.left.sum(0), self.right.sum(0)
        values, gap = constrained_solution(left, right, game.total)
        return Estimate(values, self._variances(values, left, right, game.total), gap, GROUPS - 1)

    def _variances(self, values: Tensor, left: Tensor, right: Tensor, total: Tensor) -> Tensor:
        """From what each group of samples does to the solution.

        Leaving a group out (the jackknife) says too much where that leaves hardly more samples than players;
        the residuals of the fit (the sandwich) say too little there, since the fit follows its samples. Their
        geometric mean is right for errors of equal size (as the correction known as CR2).
        """
        others, _ = constrained_solution(left - self.left, right - self.right, total)
        jackknife = (others - others.mean(0)).square().sum(0) * (GROUPS - 1) / GROUPS
        pulls = self.right - self.left @ values.T  # (GROUPS, n, outputs): what each group's residuals pull at
        moves, _ = constrained_solution(left.expand_as(self.left), pulls, torch.zeros_like(total))
        sandwich = moves.square().sum(0) * GROUPS / (GROUPS - 1)
        return (jackknife * sandwich).sqrt()

    def state(self) -> dict[str, Tensor]:
        return {"pairs": self.pairs, "left": self.left, "right": self.right}


def paired_coalitions(start: int, pairs: int, n: int, generators: Generators) -> Tensor:
    """Coalitions of uniform size 1 ... n-1 and, after them, their complements: `(2 pairs, n)`; the pairs are
    those from number `start` on."""

    def draw(number: int) -> Tensor:
        generator, device = generators[number], generators.device
        sizes = 1 + torch.randint(n - 1, (DRAWN, 1), generator=generator, device=device)
        ranks = torch.rand(DRAWN, n, generator=generator, device=device).argsort(1).argsort(1)
        return ranks < sizes

    chosen = by_block(start, pairs, draw)
    return torch.cat([chosen, ~chosen])


def constrained_solution(left: Tensor, right: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Solutions `(..., outputs, n)` of `left @ values = right` that sum to `total`, and the gap
    without that.

    `left` is `(..., n, n)`, `right` `(..., n, outputs)`.
    """
    n = left.shape[-1]
    ridge = 1e-10 * left.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
    left = left + ridge * torch.eye(n, dtype=left.dtype, device=left.device)
    ones = torch.ones(*left.shape[:-2], n, 1, dtype=left.dtype, device=left.device)
    solved = torch.linalg.solve(left, torch.cat([right, ones], -1))
    free, direction = solved[..., :-1], solved[..., -1:]
    gap = free.sum(-2) - total
    values = free - direction * (gap / direction.sum(-2))[..., None, :]
    return values.transpose(-1, -2), gap
