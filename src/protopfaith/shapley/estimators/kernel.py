"""Kernel regression: the linear game nearest to the real one, with paired sampling."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.game import Game
from protopfaith.shapley.sampling import Estimate, Sampler, State, blocks, by_sampling

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
        state = state or {
            "left": torch.zeros(GROUPS, n, n, **kind),
            "right": torch.zeros(GROUPS, n, game.n_outputs, **kind),
        }
        self.left, self.right = state["left"], state["right"]

    def round(self, game: Game, most: int, generator: torch.Generator) -> int:
        count = most // self.smallest * self.smallest
        for size in blocks(count, game.n_players, self.smallest):
            x = paired_coalitions(size // 2, game.n_players, generator)
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
        others, _ = constrained_solution(left - self.left, right - self.right, game.total)
        spread = (others - others.mean(0)).square().sum(0)
        return Estimate(values, spread * (GROUPS - 1) / GROUPS, gap, GROUPS - 1)

    def state(self) -> dict[str, Tensor]:
        return {"left": self.left, "right": self.right}


def paired_coalitions(pairs: int, n: int, generator: torch.Generator) -> Tensor:
    """Coalitions of uniform size 1 ... n-1 and, after them, their complements: `(2 pairs, n)`."""
    device = generator.device
    sizes = 1 + torch.randint(n - 1, (pairs, 1), generator=generator, device=device)
    ranks = torch.rand(pairs, n, generator=generator, device=device).argsort(1).argsort(1)
    chosen = ranks < sizes
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
