"""What sampling estimators share: rounds of evaluations until the budget or the precision is met."""

from __future__ import annotations

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
SMALLEST_ROUND = 512
LARGEST_BLOCK = 1 << 24  # entries of a coalition matrix: keeps each temporary at 128 MiB in float64


@dataclass(frozen=True)
class Estimate:
    """Values ``(outputs, n)``, their variances, the completeness gap before redistribution ``(outputs,)``."""

    values: Tensor
    variances: Tensor
    gap: Tensor
    degrees_of_freedom: float = float("inf")


class Sampler(Protocol):
    """The part that differs between sampling estimators: what to draw, and what to keep of it."""

    smallest: int  # evaluations that a round takes at least
    least: int  # evaluations that a first result takes at least

    def round(self, game: Game, most: int, generator: torch.Generator) -> int:
        """Draws coalitions, evaluates them, updates the sums; returns how many (at most ``most``)."""
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
    seed: int,
    resume: Attribution | None,
    progress: Progress | None,
    options: dict | None = None,
) -> Attribution:
    """Rounds until ``budget`` evaluations are spent or ``precision`` is reached.

    Every round has a random generator of its own, seeded by (seed, number of the round), so that a run
    that is continued neither repeats nor skips anything.
    """
    spent, rounds = _progress_of(resume)
    if budget - ENDS < sampler.least and not rounds:
        raise ProtoPFaithError(
            f"A budget of {budget} evaluations is too small for {method!r} with {game.n_players} "
            f"players; give at least {sampler.least + ENDS}."
        )
    result = sampler.estimate(game) if rounds else None
    while budget - spent >= sampler.smallest:
        if result is not None and _precise(result, precision):
            break
        most = budget - spent
        if precision is not None:  # check often enough not to overshoot by more than a quarter
            most = min(most, max(SMALLEST_ROUND, sampler.smallest, sampler.least, spent // 4))
        spent += sampler.round(game, most, _generator(game.device, seed, rounds))
        rounds += 1
        result = sampler.estimate(game) if precision is not None else None
        if progress is not None:
            progress(spent, budget)
    result = result or sampler.estimate(game)
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
        degrees_of_freedom=result.degrees_of_freedom,
        options=options or {},
        state={**counters, **{k: v.cpu() for k, v in sampler.state().items()}},
    )


def _progress_of(resume: Attribution | None) -> tuple[int, int]:
    if resume is None or resume.state is None:
        return ENDS, 0
    return int(resume.state["spent"]), int(resume.state["rounds"])


def _precise(result: Estimate, precision: float | None) -> bool:
    return precision is not None and relative_error(result.values, result.variances.sqrt()) <= precision


def _generator(device: torch.device, seed: int, number: int) -> torch.Generator:
    mixed = np.random.SeedSequence([seed & (2**64 - 1), number]).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(mixed[0] >> np.uint64(1)))


def blocks(count: int, n: int, multiple: int = 1) -> list[int]:
    """Splits ``count`` coalitions of ``n`` players into blocks of bounded memory, multiples of
    ``multiple``.
    """
    size = max(multiple, LARGEST_BLOCK // n // multiple * multiple)
    return [min(size, count - start) for start in range(0, count, size)]


def restore(resume: Attribution | None, device: torch.device) -> dict[str, Tensor] | None:
    """The state of a result to be continued, on the game's device; None to start anew."""
    if resume is None or resume.state is None:
        return None
    # Copies: a run adds to its sums in place, and the result it started from must stay as it is.
    return {name: tensor.to(device, copy=True) for name, tensor in resume.state.items()}
