"""Exact Shapley values by evaluating every coalition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.attribution import Attribution
from protopfaith.shapley.estimation import DEFAULT_BUDGET, ESTIMATORS, MOST_EVALUATIONS, Progress, finish
from protopfaith.shapley.game import Game
from protopfaith.shapley.registration import checked_by

MOST_PLAYERS = 20
FEW = 64  # coalitions, up to which nothing is sampled
BLOCK = 1 << 14


def _check_players(game: Game, *, budget: int = MOST_EVALUATIONS, **_: Any) -> None:
    n = game.n_players
    if n > MOST_PLAYERS:
        raise ProtoPFaithError(
            f"Exact values of {n} players need 2^{n} evaluations; take at most {MOST_PLAYERS} players or an "
            "estimator that samples."
        )
    if n > 1 and budget < 2**n:
        raise ProtoPFaithError(
            f"Exact values of {n} players need {2**n:,} evaluations, and the budget is {budget:,}; give no "
            "budget, fewer players, or an estimator that samples."
        )


@ESTIMATORS.register(
    "exact", description="computed exactly, from every combination of regions", planned=False
)
@checked_by(_check_players)
def exact(
    game: Game,
    *,
    budget: int = MOST_EVALUATIONS,
    precision: float | None = None,
    seed: int = 0,
    resume: Attribution | None = None,
    progress: Progress | None = None,
) -> Attribution:
    r"""All $2^n$ coalitions, up to 20 players; precision and seed do not matter, a smaller budget is refused.

    $\psi_i = \sum_{S \ni i} w_{|S|-1} v(S) - \sum_{S \not\ni i} w_{|S|} v(S)$ with
    $w_s = s! (n-s-1)! / n!$: one matrix product per block of coalitions.
    """
    _check_players(game, budget=budget)
    n = game.n_players
    values = torch.zeros(game.n_outputs, n, dtype=torch.float64, device=game.device)
    for start in range(0, 2**n, BLOCK):
        coalitions = coalitions_by_number(
            torch.arange(start, min(start + BLOCK, 2**n), device=game.device), n
        )
        values += game(coalitions).double().T @ shapley_weights(coalitions)
        if progress is not None:
            progress(start + len(coalitions), 2**n)
    return finish(
        game, "exact", values, torch.zeros_like(values), evaluations=2**n, seed=seed, precision=precision
    )


def or_exact(estimator: Callable[..., Attribution]) -> Callable[..., Attribution]:
    """The estimator, but games with so few players that the budget covers all coalitions are solved exactly.

    Where a precision is asked for, sampling may need less: it gets a quarter of what all coalitions cost to
    reach it, unless they cost no more than the usual budget.
    """

    def check(game: Game, *, budget: int, precision: float | None = None, **options: Any) -> None:
        if not _is_affordable(game, budget):
            _check_few(game, estimator.__name__, budget)
            estimator.check(game, budget=budget, precision=precision, **options)  # type: ignore[attr-defined]

    @checked_by(check)
    @wraps(estimator)
    def either(
        game: Game,
        *,
        budget: int,
        precision: float | None = None,
        resume: Attribution | None = None,
        **rest: Any,
    ) -> Attribution:
        spent = 0 if resume is None else resume.evaluations
        if not _is_affordable(game, budget - spent):
            _check_few(game, estimator.__name__, budget)
            return estimator(game, budget=budget, precision=precision, resume=resume, **rest)
        trial = max(2**game.n_players // 4, spent)
        if precision is not None and DEFAULT_BUDGET < 2**game.n_players <= budget - trial:
            sampled = estimator(game, budget=trial, precision=precision, resume=resume, **rest)
            if sampled.reached:
                return sampled
            spent = sampled.evaluations
        found = exact(game, precision=precision, seed=rest.get("seed", 0), progress=rest.get("progress"))
        return replace(found, method=estimator.__name__, evaluations=spent + found.evaluations)

    return either


def _is_affordable(game: Game, budget: int) -> bool:
    return game.n_players <= MOST_PLAYERS and 2**game.n_players <= budget


def _check_few(game: Game, name: str, budget: int) -> None:
    """Of very few players all coalitions are fewer than sampling needs."""
    if 2**game.n_players <= FEW and budget < 2**game.n_players:
        raise ProtoPFaithError(
            f"A budget of {budget} evaluations is too small for {name!r} with {game.n_players} players; give "
            f"a budget of at least {2**game.n_players}, which solves the game exactly."
        )


def coalitions_by_number(numbers: Tensor, n: int) -> Tensor:
    """The binary digits of `numbers` (m,) as coalitions `(m, n)`, player 0 the lowest digit."""
    return (numbers[:, None] >> torch.arange(n, device=numbers.device)) & 1 == 1


def shapley_weights(coalitions: Tensor) -> Tensor:
    """What each coalition's value counts for each player, `(m, n)` in float64."""
    n = coalitions.shape[1]
    table = torch.tensor(
        [math.exp(math.lgamma(s + 1) + math.lgamma(n - s) - math.lgamma(n + 1)) for s in range(n)] + [0.0],
        dtype=torch.float64,
        device=coalitions.device,
    )
    size = coalitions.sum(1)
    joined = table[(size - 1).clamp_min(0)][:, None]
    missing = table[size][:, None]
    return torch.where(coalitions, joined, -missing)
