"""What sampling estimators share: rounds of evaluations until the budget or the precision is met."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.attribution import Attribution, relative_error
from protopfaith.shapley.estimation import Progress, finish
from protopfaith.shapley.game import Game

ENDS = 2  # evaluations of all players and of none, which the game holds and every estimator uses
FIRST_ROUND = 512  # evaluations before errors are judged, where a precision is asked for
LARGEST_BLOCK = 1 << 24  # entries of a coalition matrix: keeps each temporary at 128 MiB in float64


@dataclass(frozen=True)
class Estimate:
    """Values `(outputs, n)`, their variances, the completeness gap before redistribution `(outputs,)`."""

    values: Tensor
    variances: Tensor
    gap: Tensor
    degrees_of_freedom: float = float("inf")


class Sampler(Protocol):
    """The part that differs between sampling estimators: what to draw, and what to keep of it."""

    smallest: int  # evaluations that a round takes at least
    least: int  # evaluations that a first result takes at least

    def round(self, game: Game, most: int, generator: torch.Generator) -> int:
        """Draws coalitions, evaluates them, updates the sums; returns how many (at most `most`)."""
        ...

    def estimate(self, game: Game) -> Estimate: ...

    def state(self) -> dict[str, Tensor]:
        """All that is kept; the constructor takes it back."""
        ...


def run(
    game: Game,
    method: str,
    sampler: Sampler,
    *,
    budget: int,
    precision: float | None,
    outputs: Sequence[int] | None,
    seed: int,
    resume: Attribution | None,
    progress: Progress | None,
    options: dict | None = None,
) -> Attribution:
    """Rounds until `budget` evaluations are spent or `precision` is reached.

    Every round has a random generator of its own, seeded by (seed, number of the round), so that a run
    that is continued neither repeats nor skips anything.
    """
    spent, rounds = _progress_of(resume)
    if budget - ENDS < sampler.least and not rounds:
        raise ProtoPFaithError(
            f"A budget of {budget} evaluations is too small for {method!r} with {game.n_players} "
            f"players; give a budget of at least {sampler.least + ENDS}."
        )
    goal = expected = budget
    if precision is not None:  # what is there is judged first
        goal = spent if rounds else min(budget, ENDS + max(FIRST_ROUND, sampler.least))
    while True:
        while goal - spent >= sampler.smallest:
            spent += sampler.round(game, goal - spent, _generator(game.device, seed, rounds))
            rounds += 1
            if progress is not None:
                progress(spent, expected)
        result = sampler.estimate(game)
        if precision is None or budget - spent < sampler.smallest:
            break
        error = relative_error(result.values, result.variances.sqrt(), outputs)
        if error <= precision:
            break
        goal, expected = next_goal(spent, error / precision, sampler.smallest, budget)
    counters = {"spent": torch.tensor(spent), "rounds": torch.tensor(rounds)}
    return finish(
        game,
        method,
        result.values,
        result.variances.clamp_min(0).sqrt(),
        gap=result.gap,
        evaluations=spent,
        seed=seed,
        precision=precision,
        outputs=outputs,
        degrees_of_freedom=result.degrees_of_freedom,
        options=options or {},
        state={**counters, **{k: v.cpu() for k, v in sampler.state().items()}},
    )


def next_goal(spent: int, excess: float, smallest: int, budget: int) -> tuple[int, int]:
    """How many evaluations to have before errors are judged again, and how many to expect in all.

    Errors fall with the square root of the evaluations: `excess` times too large an error needs excess^2
    times as many, which also tells the time left.

    >>> next_goal(1000, 1.4, 1, 10**6)
    (2058, 2058)
    >>> next_goal(1000, 10.0, 1, 10**6)  # four times as many at most: early errors are rough themselves
    (4000, 105000)
    """
    wanted = math.ceil(min(1.05 * spent * (excess * excess), budget))
    goal = min(max(wanted, math.ceil(1.25 * spent)), 4 * spent)
    goal = min(max(goal, spent + smallest), budget)
    return goal, max(goal, wanted)


def _progress_of(resume: Attribution | None) -> tuple[int, int]:
    if resume is None or resume.state is None:
        return ENDS, 0
    return int(resume.state["spent"]), int(resume.state["rounds"])


def _generator(device: torch.device, seed: int, number: int) -> torch.Generator:
    mixed = np.random.SeedSequence([seed & (2**64 - 1), number]).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(mixed[0] >> np.uint64(1)))


def blocks(count: int, n: int, multiple: int = 1) -> list[int]:
    """Splits `count` coalitions of `n` players into blocks of bounded memory, multiples of
    `multiple`.
    """
    size = max(multiple, LARGEST_BLOCK // n // multiple * multiple)
    return [min(size, count - start) for start in range(0, count, size)]


def restore(resume: Attribution | None) -> dict[str, Tensor] | None:
    """What the sampler kept of a result to be continued; None to start anew."""
    if resume is None or resume.state is None:
        return None
    return {name: tensor for name, tensor in resume.state.items() if name not in ("spent", "rounds")}
