"""The additive game that is nearest to the samples: exact where players do not act together.

v^(x) = u'x + c(p), with c a function of the density p, fitted by least squares. Its Shapley values are u_i,
and an equal share of the rest. The surrogate shrinks its effects and lets them change with density, so it
needs many more samples to see that a game is as simple as this.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.shapley.densities import hat_functions, roughness
from protopfaith.shapley.game import Game

SPARE = 32  # samples that there must be beyond the unknowns
CLEARLY = 0.5  # of what the surrogate leaves over: the additive game predicts an output where it leaves less
RIDGE = 1e-9


@dataclass(frozen=True)
class Additive:
    """u and c of every output."""

    effects: Tensor  # (outputs, n)
    curve: Tensor  # (knots, outputs)

    def __call__(self, masks: Tensor) -> Tensor:
        """Predictions `(b, outputs)` for masks `(b, n)`."""
        return terms(masks) @ torch.cat([self.effects.T, self.curve])

    def shapley(self) -> Tensor:
        """Its Shapley values, but for the players' equal shares in the total, (outputs, n)."""
        return self.effects - self.effects.mean(1, keepdim=True)


def terms(masks: Tensor) -> Tensor:
    """What effects and curve are multiplied by, `(b, n + knots)`."""
    x = masks.double()
    return torch.cat([x, hat_functions(x.mean(1))], 1)


def fit_additive(game: Game, masks: Tensor, values: Tensor) -> tuple[Additive, Tensor] | None:
    """Least squares on all samples, and what is left over of each (m, outputs) by a fit without it; None
    where samples are too few.

    Args:
        game: whose values of all players and of none are known, too.
        masks: (m, n).
        values: (m, outputs), float64.
    """
    n, smooth = game.n_players, roughness(game.device)
    if len(masks) < n + len(smooth) + SPARE:
        return None
    ends = masks.new_zeros(2, n)
    ends[1] = True
    rows = terms(torch.cat([masks, ends]))
    targets = torch.cat([values, torch.stack([game.empty, game.grand]).double()])
    left = rows.T @ rows
    left[n:, n:] += smooth
    left.diagonal().add_(RIDGE * left.diagonal().mean())  # what all players share may also be in the curve
    inverse = torch.linalg.inv_ex(left).inverse  # `inv` waits for a GPU
    found = inverse @ (rows.T @ targets)
    leverage = ((rows @ inverse) * rows).sum(1, keepdim=True)
    left_over = (targets - rows @ found) / (1 - leverage).clamp_min(RIDGE)
    return Additive(found[:n].T, found[n:]), left_over[: len(masks)]


def is_clearly_better(left_over: Tensor, other: Tensor) -> Tensor:
    """For each output, whether the additive game leaves clearly less over than the surrogate, (outputs,)."""
    return left_over.square().mean(0) < CLEARLY * other.square().mean(0)
