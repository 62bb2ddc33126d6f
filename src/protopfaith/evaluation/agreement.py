"""Agreement with the true Shapley values, and how reliable that truth is itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Game, estimate

EXACT_PLAYERS = 12
"""Up to so many players the truth is enumerated."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Shapley values from two independent halves of a large budget: their mean is the truth."""

    halves: Tensor  # (2, outputs, n)
    evaluations: int

    @property
    def values(self) -> Tensor:
        """(outputs, n)"""
        return self.halves.mean(0)

    @property
    def reliability(self) -> Tensor:
        """Correlation of the mean with another truth made the same way: 2 r / (1 + r), r between halves.

        (outputs,). No estimator's correlation with this truth can be expected above the square root of it.
        """
        r = pearson(*self.halves)
        return 2 * r / (1 + r).clamp_min(1e-12)

    @property
    def rank_reliability(self) -> Tensor:
        """Rank correlation between the halves, (outputs,): low where many players have values near zero."""
        return spearman(*self.halves)


@dataclass(frozen=True, eq=False)
class Agreement:
    """How near values are to the truth, for each output."""

    pearson: Tensor
    spearman: Tensor
    relative_error: Tensor
    """|values - truth| / |truth|, Euclidean; it needs values on the truth's own scale."""


def true_values(game: Game, budget: int, seed: int = 0) -> Truth:
    """Exact for few players, else two runs of plain Owen sampling with half of the budget each.

    Not the default estimator, which shrinks its values: the truth must be unbiased, and share nothing with
    what is judged by it.
    """
    if game.n_players <= EXACT_PLAYERS:
        exact = estimate(game, "exact").values
        return Truth(torch.stack([exact, exact]), 2**game.n_players)
    halves = [estimate(game, "owen", budget=budget // 2, seed=s) for s in (2 * seed, 2 * seed + 1)]
    return Truth(torch.stack([half.values for half in halves]), sum(half.evaluations for half in halves))


def agreement(values: Tensor, truth: Tensor) -> Agreement:
    """Of ``values`` with ``truth``, both (outputs, n).

    >>> agreement(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[1.0, 2.0, 3.0]])).spearman.tolist()
    [1.0]
    """
    values, truth = values.double(), truth.double()
    if values.shape != truth.shape:
        raise ProtoPFaithError(
            f"Values of shape {tuple(values.shape)} cannot agree with a truth of shape {tuple(truth.shape)}; "
            "compare explanations of the same players."
        )
    error = (values - truth).norm(dim=1) / truth.norm(dim=1)
    return Agreement(pearson(values, truth), spearman(values, truth), error)


def pearson(a: Tensor, b: Tensor) -> Tensor:
    """Row by row, (outputs,); zero where a row is constant, as a constant map tells nothing."""
    a, b = (x.double() - x.double().mean(-1, keepdim=True) for x in (a, b))
    size = a.norm(dim=-1) * b.norm(dim=-1)
    return torch.where(size > 0, (a * b).sum(-1) / size.clamp_min(1e-300), torch.zeros_like(size))


def spearman(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's correlation of ranks, where equal values share their mean rank."""
    return pearson(ranks(a), ranks(b))


def ranks(values: Tensor) -> Tensor:
    """Mean ranks within every row, from 0."""
    from scipy.stats import rankdata

    return torch.from_numpy(rankdata(values.detach().cpu().double().numpy(), axis=-1)) - 1
