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
from protopfaith.shapley.estimation import DEFAULT_BUDGET, ESTIMATORS, Progress, finish
from protopfaith.shapley.game import Game
from protopfaith.shapley.registration import checked_by

MOST_PLAYERS = 20
BLOCK = 1 << 14


def _check_players(game: Game, **_: Any) -> None:
    n = game.n_players
    if n > MOST_PLAYERS:
        raise ProtoPFaithError(
            f"Exact values of {n} players need 2^{n} evaluations; take at most {MOST_PLAYERS} players or an "
            "estimator that samples."
        )


@ESTIMATORS.register("exact", description="computed exactly, from every combination of regions")
@checked_by(_check_players)
def exact(
    game: Game,
    *,
    budget: int = 0,
    precision: float | None = None,
    seed: int = 0,
    resume: Attribution | None = None,
    progress: Progress | None = None,
) -> Attribution:
    r"""All $2^n$ coalitions, up to 20 players; budget, precision and seed do not matter.

    $\psi_i = \sum_{S \ni i} w_{|S|-1} v(S) - \sum_{S \not\ni i} w_{|S|} v(S)$ with
    $w_s = s! (n-s-1)! / n!$: one matrix product per block of coalitions.
    """
    _check_players(game)
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

    Where a precision is asked for, the usual budget counts: sampling may need less than a large one.
    """

    def check(game: Game, *, budget: int, precision: float | None = None, **options: Any) -> None:
        if not _is_affordable(game, budget, precision):
            estimator.check(game, budget=budget, precision=precision, **options)  # type: ignore[attr-defined]

    @checked_by(check)
    @wraps(estimator)
    def either(game: Game, *, budget: int, precision: float | None = None, **rest: Any) -> Attribution:
        if not _is_affordable(game, budget, precision):
            return estimator(game, budget=budget, precision=precision, **rest)
        found = exact(game, precision=precision, seed=rest.get("seed", 0), progress=rest.get("progress"))
        return replace(found, method=estimator.__name__)

    return either


def _is_affordable(game: Game, budget: int, precision: float | None) -> bool:
    affordable = budget if precision is None else min(budget, DEFAULT_BUDGET)
    return game.n_players <= MOST_PLAYERS and 2**game.n_players <= affordable


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
