"""What is asked of a judgement, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.agreement import true_values
from protopfaith.evaluation.explainers import EXPLAINERS
from protopfaith.evaluation.explainers.games import ESTIMATES, estimated
from protopfaith.evaluation.plan import TRUTH, Plan
from protopfaith.evaluation.quantus_metrics import check_quantus
from protopfaith.evaluation.summary import EARLY
from protopfaith.explanation.game import rehearsal
from protopfaith.shapley import Game

FEWEST_STEPS = math.ceil(1 / EARLY)


def check_request(names: Sequence[str], prototypes: int | Sequence[int] | None, plan: Plan) -> None:
    """Complains, in one sentence, about whatever could not come to a good end."""
    _check_names(names, plan)
    _check_numbers(prototypes, plan)
    if plan.quantus:
        check_quantus()
    _rehearse(names, plan)


def _check_names(names: Sequence[str], plan: Plan) -> None:
    if not names:
        raise ProtoPFaithError(f"No explainer was named; give some of {', '.join(EXPLAINERS)}.")
    for name in [*names, *(set(plan.limits) - {TRUTH})]:
        EXPLAINERS[name]
    for name, limit in plan.limits.items():
        if limit < 1:
            raise ProtoPFaithError(f"The limit of {name} is {limit} prototypes; give at least one.")


def _check_numbers(prototypes: int | Sequence[int] | None, plan: Plan) -> None:
    count = prototypes if prototypes is None or isinstance(prototypes, int) else len(prototypes)
    options, early = plan.options, f", since AOPC is also taken over the first {EARLY:.0%} of the steps"
    for name, number, least, why in (
        ("number of prototypes", count, 1, ""),
        ("number of steps", plan.steps, FEWEST_STEPS, early),
        ("number of sizes", options.sizes, 1, ""),
        ("number of checked images", plan.checked, 1, ""),
        ("truth_budget", plan.truth_budget, 0, ""),
        ("moment_batch", options.moment_batch, 1, ""),
    ):
        if number is not None and number < least:
            raise ProtoPFaithError(f"The {name} is {number}; give at least {least}{why}.")


def _rehearse(names: Sequence[str], plan: Plan) -> None:
    """Estimators complain themselves where they begin, such as about a budget too small for the players."""
    options = plan.options
    image = torch.zeros(1, *options.players.labels.shape)

    def game(function: Callable[[Tensor], Tensor]) -> Game:
        return Game(function, image, options.players, memory=options.memory, check=False)

    for name in names:
        with rehearsal() as function:
            played = game(function)
            if name in ESTIMATES:
                estimated(name, played, options)
    if plan.truth_budget:
        try:
            with rehearsal() as function:
                true_values(game(function), plan.truth_budget)
        except ProtoPFaithError as error:
            halves = f"The true values take two halves of truth_budget={plan.truth_budget}"
            raise ProtoPFaithError(f"{halves}: {error}") from error
