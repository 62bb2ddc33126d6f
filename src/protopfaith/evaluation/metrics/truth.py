"""Agreement with the true Shapley values, and how reliable that truth is itself."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, seed_number
from protopfaith.correlation import pearson, spearman
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Game, check_estimate, estimate
from protopfaith.shapley.estimation import MOST_EVALUATIONS, check_plan

EXACT_PLAYERS = 12
"""Up to so many players the truth is enumerated."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Shapley values from two independent halves of a large budget: their mean is the truth.

    Args:
        halves: (2, outputs, n)
        evaluations: of both together

    >>> truth = Truth(torch.tensor([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 5.0]]]), evaluations=64)
    >>> truth.values.tolist(), truth.rank_reliability.round(decimals=6).tolist()
    ([[1.0, 2.0, 4.0]], [1.0])
    """

    halves: Tensor
    evaluations: int

    def __repr__(self) -> str:
        _, outputs, players = self.halves.shape
        return f"Truth({outputs} outputs, {players} players, {self.evaluations:,} evaluations)"

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
class TruthAgreement:
    """How near values are to the truth, for each output.

    Args:
        pearson: correlation, (outputs,)
        spearman: rank correlation, (outputs,)
        relative_error: |values - truth| / |truth|, Euclidean; it needs values on the truth's own scale

    >>> compare_with_truth(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 2.0, 3.0]]))
    TruthAgreement(pearson 1.000, spearman 1.000, relative_error 0.000)
    """

    pearson: Tensor
    spearman: Tensor
    relative_error: Tensor

    def __repr__(self) -> str:
        means = (
            f"{name} {float(getattr(self, name).mean()):.3f}"
            for name in ("pearson", "spearman", "relative_error")
        )
        return f"TruthAgreement({', '.join(means)})"


def true_values(game: Game, budget: int, seed: int = 0) -> Truth:
    """Exact for few players, else two runs of plain Owen sampling (`owen`) with half of the budget each.

    Not the default estimator, which shrinks its values: the truth must be unbiased. It shares no draws with
    what is judged by it, also where that is `owen` itself.

    Args:
        game: of any number of players
        budget: evaluations of both halves together
        seed: of the draws

    >>> from protopfaith.shapley import Players
    >>> game = Game(lambda x: x.sum((1, 2, 3))[:, None], torch.ones(1, 4, 4), Players.windows((4, 4), 2))
    >>> true_values(game, budget=64).values.round(decimals=6).tolist()
    [[4.0, 4.0, 4.0, 4.0]]
    """
    check_arguments(true_values, locals())
    instance(game, Game, "What is played", "a Game")
    check_plan(budget, None)
    seed_number(seed)
    check_true_values(game, budget)
    if game.n_players <= EXACT_PLAYERS:
        exact = estimate(game, "exact").values
        return Truth(torch.stack([exact, exact]), 2**game.n_players)
    halves = [estimate(game, "owen", budget=budget // 2, seed=s) for s in (2 * seed, 2 * seed + 1)]
    return Truth(torch.stack([half.values for half in halves]), sum(half.evaluations for half in halves))


def check_true_values(game: Game, budget: int) -> None:
    """Raises if `true_values` could not work with this budget; evaluates nothing."""
    if game.n_players <= EXACT_PLAYERS or _is_enough(game, budget):
        return
    check_estimate(game, "owen", budget=MOST_EVALUATIONS)  # whatever else is wrong
    least = bisect_left(range(MOST_EVALUATIONS), True, key=partial(_is_enough, game))
    raise ProtoPFaithError(
        f"A budget of {budget:,} is too small for the true values of {game.n_players:,} players, which take "
        f"two halves of it; give at least {least:,}."
    )


def _is_enough(game: Game, budget: int) -> bool:
    """Whether half of it is."""
    try:
        check_estimate(game, "owen", budget=budget // 2)
    except ProtoPFaithError:
        return False
    return True


def compare_with_truth(values: Tensor, truth: Tensor) -> TruthAgreement:
    """Of `values` with `truth`, both (outputs, n).

    Args:
        values: of some explainer, (outputs, n)
        truth: of the same players, (outputs, n)

    >>> truth = torch.tensor([[0.0, 3.0, 4.0]])
    >>> compare_with_truth(torch.tensor([[0.0, 3.0, 9.0]]), truth).relative_error.tolist()
    [1.0]
    """
    check_arguments(compare_with_truth, locals())
    for tensor in (values, truth):
        instance(tensor, Tensor, "Values", "a tensor of outputs x players")
    values, truth = values.double(), truth.double()
    if values.shape != truth.shape:
        raise ProtoPFaithError(
            f"Values of shape {tuple(values.shape)} cannot agree with a truth of shape {tuple(truth.shape)}; "
            "compare explanations of the same players."
        )
    error = (values - truth).norm(dim=1) / truth.norm(dim=1)
    return TruthAgreement(pearson(values, truth), spearman(values, truth), error)
