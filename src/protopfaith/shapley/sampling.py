"""What sampling estimators share: rounds of evaluations until the budget or the precision is met."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.attribution import Attribution
from protopfaith.shapley.estimation import Progress, finish, game_error
from protopfaith.shapley.game import Game
from protopfaith.shapley.registration import checked_by

ENDS = 2  # evaluations of all players and of none, which the game holds and every estimator uses
FIRST_ROUND = 512  # evaluations before errors are judged, where a precision is asked for
State = dict[str, Tensor] | None  # what a sampler kept, to go on from; None to start anew
DRAWN = 256  # rows that are drawn together, by a generator of their own
LARGEST_BLOCK = 1 << 24  # entries of a coalition matrix: keeps each temporary at 128 MiB in float64


@dataclass(frozen=True)
class Estimate:
    """Values `(outputs, n)`, their variances, the completeness gap before redistribution `(outputs,)`, and
    the chance that a value has the wrong sign, where a posterior tells it `(outputs, n)`."""

    values: Tensor
    variances: Tensor
    gap: Tensor
    degrees_of_freedom: float = float("inf")
    wrong_sign: Tensor | None = None


class Generators:
    """Random generators by number. A sampler that takes them by the number of what it draws (a block, a pair
    of orders) draws the same whether it goes on from a result or went there in one go."""

    def __init__(self, device: torch.device, seed: int):
        self.device, self.seed = device, seed

    def __getitem__(self, number: int) -> torch.Generator:
        mixed = np.random.SeedSequence([self.seed & (2**64 - 1), number]).generate_state(1, np.uint64)
        return torch.Generator(self.device).manual_seed(int(mixed[0] >> np.uint64(1)))


class Sampler(Protocol):
    """The part that differs between sampling estimators: what to draw, and what to keep of it."""

    least: int  # evaluations that a first result takes at least

    @property
    def smallest(self) -> int:
        """Evaluations that a round takes at least."""
        ...

    def round(self, game: Game, most: int, generators: Generators) -> int:
        """Draws coalitions, evaluates them, updates the sums; returns how many (at most `most`)."""
        ...

    def estimate(self, game: Game) -> Estimate: ...

    def state(self) -> dict[str, Tensor]:
        """All that is kept; the constructor takes it back."""
        ...


def by_sampling(make: Callable[..., Sampler]) -> Callable[..., Attribution]:
    """An estimator from the function that makes its sampler: all that a sampling estimator must say.

    `make(game, state, **options)` gets the state to go on from, or None, and the estimator's own options.
    The estimator takes these options and the plan (budget, precision, seed, resume, progress, outputs),
    has `make`'s name and docstring, and records the options that differ from their defaults.
    """
    own = list(inspect.signature(make).parameters.values())[2:]

    def check(game: Game, *, budget: int, precision: float | None = None, **options: Any) -> None:
        _check_budget(game, make.__name__, make(game, None, **options), budget)

    @checked_by(check)
    @wraps(make)
    def estimator(
        game: Game,
        *,
        budget: int,
        precision: float | None = None,
        seed: int = 0,
        resume: Attribution | None = None,
        progress: Progress | None = None,
        outputs: Sequence[int] | None = None,
        **options: Any,
    ) -> Attribution:
        state = None if resume is None or resume.state is None else dict(resume.state)
        spent, rounds = (ENDS, 0) if state is None else (int(state.pop("spent")), int(state.pop("rounds")))
        sampler = make(game, state, **options)
        course = _Course(
            game, make.__name__, sampler, budget, precision, outputs, seed, progress, spent, rounds
        )
        changed = {p.name: options[p.name] for p in own if options.get(p.name, p.default) != p.default}
        return course.run(changed)

    plan = list(inspect.signature(estimator, follow_wrapped=False).parameters.values())[:-1]
    estimator.__signature__ = inspect.Signature([*plan, *own])  # type: ignore[attr-defined]
    return estimator


def _check_budget(game: Game, method: str, sampler: Sampler, budget: int) -> None:
    if budget - ENDS < sampler.least:
        raise ProtoPFaithError(
            f"A budget of {budget} evaluations is too small for {method!r} with {game.n_players} players; "
            f"give a budget of at least {sampler.least + ENDS}."
        )


class _Course:
    """Rounds of a sampler until the budget is spent or the precision is reached."""

    def __init__(  # noqa: PLR0917
        self,
        game: Game,
        method: str,
        sampler: Sampler,
        budget: int,
        precision: float | None,
        outputs: Sequence[int] | None,
        seed: int,
        progress: Progress | None,
        spent: int,
        rounds: int,
    ):
        self.game, self.method, self.sampler = game, method, sampler
        self.budget, self.precision, self.outputs = budget, precision, outputs
        self.seed, self.progress = seed, progress
        self.generators = Generators(game.device, seed)
        self.spent, self.rounds = spent, rounds

    def run(self, options: dict[str, Any]) -> Attribution:
        if not self.rounds:
            _check_budget(self.game, self.method, self.sampler, self.budget)
        # Evaluations to have before errors are judged for the first time, and those to expect.
        goal, expected = self.budget, self.budget
        if self.precision is not None and self.rounds:
            goal = self.spent  # what is there is judged first
        elif self.precision is not None:
            goal = min(self.budget, ENDS + max(FIRST_ROUND, self.sampler.least))
        while True:
            self._sample(goal, expected)
            found, excess = self._outcome(options)
            if found is not None:
                return found
            goal, expected = next_goal(self.spent, excess, self.sampler.smallest, self.budget)

    def _sample(self, goal: int, expected: int) -> None:
        while goal - self.spent >= self.sampler.smallest:
            self.spent += self.sampler.round(self.game, goal - self.spent, self.generators)
            self.rounds += 1
            if self.progress is not None:
                self.progress(self.spent, expected)

    def _outcome(self, options: dict[str, Any]) -> tuple[Attribution | None, float]:
        """The result if it is good enough, and how many times too large its error is (0 where no precision
        is asked for).

        The values are checked last, as that waits for a GPU: until it has evaluated all coalitions, it is
        told what to do with them.
        """
        try:
            result = self.sampler.estimate(self.game)
            excess = 0.0
            if self.precision is not None:
                errors = result.variances.sqrt()
                excess = game_error(self.game, result.values, errors, self.outputs) / self.precision
            done = excess <= 1 or self.budget - self.spent < self.sampler.smallest
            return self._finished(result, options) if done else None, excess
        finally:
            self.game.check()

    def _finished(self, result: Estimate, options: dict[str, Any]) -> Attribution:
        counters = {"spent": torch.tensor(self.spent), "rounds": torch.tensor(self.rounds)}
        return finish(
            self.game,
            self.method,
            result.values,
            result.variances.clamp_min(0).sqrt(),
            gap=result.gap,
            evaluations=self.spent,
            seed=self.seed,
            precision=self.precision,
            outputs=self.outputs,
            degrees_of_freedom=result.degrees_of_freedom,
            wrong_signs=result.wrong_sign,
            options=options,
            state={**counters, **self.sampler.state()},
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


def by_block(start: int, count: int, draw: Callable[[int], Tensor]) -> Tensor:
    """Rows start ... start + count - 1 of the blocks of `DRAWN` rows that `draw(number)` gives: what is drawn
    does not depend on where an earlier result ended."""
    parts = []
    for number in range(start // DRAWN, -(-(start + count) // DRAWN)):
        first = number * DRAWN
        parts.append(draw(number)[max(start - first, 0) : start + count - first])
    return torch.cat(parts)


def checked_state(state: State, fresh: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state to go on from, or a fresh one; raises if an older version left other things."""
    if state is None:
        return fresh
    if set(state) != set(fresh):
        raise ProtoPFaithError(
            "The result to continue was made by another version of ProtoPFaith, which kept other sums; start "
            "anew without resume."
        )
    return state


def blocks(count: int, n: int, multiple: int = 1) -> list[int]:
    """Splits `count` coalitions of `n` players into blocks of bounded memory, multiples of
    `multiple`.
    """
    size = max(multiple, LARGEST_BLOCK // n // multiple * multiple)
    return [min(size, count - start) for start in range(0, count, size)]
