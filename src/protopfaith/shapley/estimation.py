"""One way in: `estimate(game, method, budget, precision)`, whatever the estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor

from protopfaith.annotations import fits
from protopfaith.arguments import (
    instance,
    numbers_below,
    seed_number,
    shown,
    tensor,
    whole_number,
)
from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import check_players
from protopfaith.listening import EVALUATIONS, check_listener, passing_through
from protopfaith.progress import Bar
from protopfaith.registry import borrowed
from protopfaith.shapley.attribution import Attribution, largest_ratio
from protopfaith.shapley.continuing import check_method, check_options, check_same_game, marks, own_copy
from protopfaith.shapley.game import Game
from protopfaith.shapley.registration import Estimators, typed_options
from protopfaith.shapley.transfer import on_cpu
from protopfaith.specs import DEFAULT_METHOD, check_precision

MOST_EVALUATIONS = 10**12  # more is a typing error
DEFAULT_BUDGET = 4096  # evaluations, where neither a budget nor a precision is given
# Where a precision alone is given: the end of patience, not of what is possible. It covers all coalitions of
# 18 players, after a quarter as many evaluations that tried to do without them.
LARGEST_BUDGET = 5 << 16

# Errors of a whole map, relative to the output, that are rounding: in float32, and in a 16-bit dtype.
ROUNDING, ROUNDING_REDUCED = 1e-7, 1e-3

Progress = Callable[[int, int], None]  # evaluations done, evaluations expected


class Estimator(Protocol):
    """What an estimator is: a function of a game and a plan.

    Sampling estimators spend at most `budget` evaluations in all (those of `resume` included) and stop
    early once `precision` is reached. Those that do so take `outputs`, too: the outputs whose precision
    counts (None: all). Deterministic ones (moment propagation) read `game.function`, `game.image`,
    `game.players` and `game.baseline` and may ignore budget, precision, seed and resume. The state of
    `resume` is the estimator's own copy, on the game's device.
    """

    def __call__(
        self,
        game: Game,
        *,
        budget: int,
        precision: float | None,
        seed: int,
        resume: Attribution | None,
        progress: Progress | None,
    ) -> Attribution: ...


ESTIMATORS = Estimators("estimator")


def estimate(  # noqa: PLR0917  (method, budget and precision read well without names)
    game: Game,
    method: str = "default",
    budget: int | None = None,
    precision: float | None = None,
    seed: int = 0,
    resume: Attribution | None = None,
    progress: Progress | bool | None = None,
    outputs: Sequence[int] | None = None,
    **options: object,
) -> Attribution:
    """Shapley values of `game` for all of its outputs.

    Args:
        game: what is played, see `Game`.
        method: a name of `ESTIMATORS`; "default" is the best sampling estimator.
        budget: evaluations of the function at most, those of `resume` included.
        precision: stop once the root mean square standard error over the root mean square value is this
            small for every output; the result's `reached` says whether it was. Without a budget, at most
            327,680 evaluations.
        seed: the same seed gives the same result on the same kind of device.
        resume: a result to go on from, with its own seed and options; `budget` then counts its evaluations,
            too. It must be one of the same game (`check_same_game` says what that means), and stays as it
            is.
        progress: True for a progress bar, or a function of (evaluations done, evaluations expected).
        outputs: numbers of the outputs whose precision counts, all by default. The others' values come with
            their standard errors all the same; one that is nearly constant would else never be precise.
        options: the estimator's own.

    Returns:
        The values with their standard errors, and all that is needed to judge them.

    Raises:
        ProtoPFaithError: if the estimator cannot work with the plan, the options or the result to resume.

    >>> import torch
    >>> from protopfaith.shapley import Players
    >>> image = torch.arange(64.0).reshape(1, 8, 8)
    >>> game = Game(lambda x: x.flatten(1).sum(1).sqrt(), image, Players.windows((8, 8), 1))
    >>> found = estimate(game, budget=500)
    >>> found.evaluations, bool((found.values[0].sum() - found.total[0]).abs() < 1e-4)
    (500, True)
    """
    instance(game, Game, "What is estimated", "a Game")
    instance(method, str, "The estimator", "the name of one")
    outputs = _checked_outputs(outputs, game)
    _check_progress(progress)
    name = DEFAULT_METHOD if method == "default" else method
    estimator, seed = ESTIMATORS[name], seed_number(seed)
    options = _checked(game, name, budget, precision, options)
    if resume is not None:
        instance(resume, Attribution, "The result to go on from", "an Attribution")
        if _is_exact(resume, name):
            check_same_game(resume, game)
            return resume  # nothing to add
        seed, options, resume = _resumed(resume, game, name, options)
    budget = _evaluations(name, budget, precision, resume)
    if game.n_players == 1:  # nothing to share, nothing to sample
        return replace(ESTIMATORS["exact"](game, seed=seed, precision=precision), method=name)
    if outputs is not None and "outputs" in inspect.signature(estimator).parameters:
        options = {**options, "outputs": outputs}
    # What the caller has around it is not for our sums; a game has a setting of its own.
    plain = torch.autocast(game.device.type, enabled=False)
    with _reporting(progress) as report, plain, borrowed(f"The estimator {name!r}", estimator):
        found = estimator(
            game, budget=budget, precision=precision, seed=seed, resume=resume, progress=report, **options
        )
    return instance(found, Attribution, f"What the estimator {name!r} gives", "an Attribution")


def check_estimate(
    game: Game,
    method: str = "default",
    budget: int | None = None,
    precision: float | None = None,
    **options: object,
) -> None:
    """Raises whatever `estimate` would raise about its arguments, without evaluating any coalition.

    Args:
        game: what is to be played.
        method: a name of `ESTIMATORS`.
        budget: evaluations at most.
        precision: relative error to stop at.
        options: the estimator's own.

    >>> import torch
    >>> from protopfaith.shapley import Players
    >>> game = Game(lambda x: x.flatten(1).sum(1), torch.ones(1, 8, 8), Players.windows((8, 8), 1))
    >>> check_estimate(game, budget=500)
    >>> check_estimate(game, "exact")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    protopfaith.errors.ProtoPFaithError: Exact values of 64 players need 2^64 evaluations; ...
    """
    instance(method, str, "The estimator", "the name of one")
    name = DEFAULT_METHOD if method == "default" else method
    options = _checked(game, name, budget, precision, options)
    check = getattr(ESTIMATORS[name], "check", None)
    if check is not None and game.n_players > 1:
        check(game, budget=_evaluations(name, budget, precision, None), precision=precision, **options)


def _checked(
    game: Game, name: str, budget: int | None, precision: float | None, options: dict[str, object]
) -> dict[str, Any]:
    """The options in their types, once all that was asked makes sense."""
    instance(game, Game, "What is played", "a Game")
    check_plan(budget, precision)
    check_players(game.n_players)
    return typed_options(name, ESTIMATORS[name], options)


def _is_exact(resume: Attribution, name: str) -> bool:
    return resume.state is None and resume.method == name and not bool(resume.standard_errors.any())


def _resumed(
    resume: Attribution, game: Game, name: str, options: dict[str, Any]
) -> tuple[int, dict[str, Any], Attribution]:
    """Seed and options of a result to go on from, and a copy of it that the estimator may change."""
    check_method(resume, name)
    check_same_game(resume, game)
    check_options(resume, ESTIMATORS[name], options)
    return resume.seed, {**resume.options, **options}, own_copy(resume, game.device)


def _evaluations(name: str, budget: int | None, precision: float | None, resume: Attribution | None) -> int:
    """The budget, or what is usual where none is given."""
    if budget is not None:
        return budget
    if not ESTIMATORS.traits(name).planned:  # it takes as many as it needs
        return MOST_EVALUATIONS
    usual = DEFAULT_BUDGET if precision is None else LARGEST_BUDGET
    return usual if resume is None else max(usual, resume.evaluations)


def finish(
    game: Game,
    method: str,
    values: Tensor,
    standard_errors: Tensor,
    *,
    gap: Tensor | None = None,
    evaluations: int,
    seed: int = 0,
    precision: float | None = None,
    outputs: Sequence[int] | None = None,
    state: dict[str, Tensor] | None = None,
    wrong_signs: Tensor | None = None,
    **rest: object,
) -> Attribution:
    """The attribution of an estimator's result: fills in all that the game knows.

    Args:
        game: the game that was played.
        method: the estimator's name.
        values: `(outputs, n)`.
        standard_errors: `(outputs, n)`; zero where values are exact, NaN where errors are unknown.
        gap: the completeness gap before redistribution `(outputs,)`; by default that of `values`.
        evaluations: how many were spent.
        seed: the seed.
        precision: the one asked for, if any.
        outputs: those whose precision counts, all by default.
        state: what the estimator needs to go on; gets what its game is recognized by.
        wrong_signs: the chances of wrong signs `(outputs, n)`, where a posterior tells them.
        rest: other fields of `Attribution`.

    >>> import torch
    >>> from protopfaith.shapley import Players
    >>> game = Game(lambda x: x.flatten(1).sum(1), torch.ones(1, 1, 2), Players.windows((1, 2), 1))
    >>> finish(game, "guess", torch.ones(1, 2), torch.zeros(1, 2), evaluations=2).completeness_gap.tolist()
    [0.0]
    """
    instance(game, Game, "What was estimated", "a Game")
    for given, what in ((values, "The values"), (standard_errors, "The standard errors")):
        tensor(given, what, "outputs x players", 2)
    if not values.numel() or values.shape != standard_errors.shape:
        raise ProtoPFaithError(
            f"Values of shape {tuple(values.shape)} cannot have standard errors of shape "
            f"{tuple(standard_errors.shape)}; give one for each, and at least one."
        )
    if gap is not None:
        tensor(gap, "The gap", "one number for each output", 1)
    if wrong_signs is not None:
        tensor(wrong_signs, "The wrong signs", "outputs x players", 1, 2)
    if state is not None and not fits(state, dict[str, Tensor]):
        raise ProtoPFaithError(f"The state is a mapping of names to tensors, not {shown(state)}.")
    check_plan(None, precision)
    outputs = _checked_outputs(outputs, game)
    values, standard_errors = values.double(), standard_errors.double()
    gap = values.sum(-1) - game.total.to(values) if gap is None else gap.double()
    numbers = {"values": values, "errors": standard_errors, "gap": gap, "total": game.total}
    wrong = ~(values.isfinite() | standard_errors.isnan()) | (standard_errors < 0)
    numbers["error"] = torch.where(wrong.any(), -1.0, _error(game, values, standard_errors, outputs))
    if wrong_signs is not None:
        numbers["wrong signs"] = wrong_signs.double()
    kept = {} if state is None else {**state, **marks(game)}
    here = on_cpu({**numbers, **{f"kept {name}": tensor for name, tensor in kept.items()}})  # waits once
    error = float(here["error"])
    if error < 0:
        raise ProtoPFaithError(
            "Values that are not numbers have unknown standard errors (NaN), and no standard error is below "
            "zero; correct what the estimator gives."
        )
    return Attribution(
        values=here["values"],
        standard_errors=here["errors"],
        completeness_gap=here["gap"],
        total=here["total"],
        wrong_signs=here.get("wrong signs"),
        evaluations=evaluations,
        players=game.players.to("cpu"),
        baseline=game.baseline_name,
        method=method,
        seed=seed,
        precision=error,
        reached=precision is None or error <= precision,
        state=None if state is None else {name: here[f"kept {name}"] for name in kept},
        **rest,  # type: ignore[arg-type]
    )


def game_error(
    game: Game, values: Tensor, standard_errors: Tensor, outputs: Sequence[int] | None = None
) -> float:
    """The relative error of a game's values, see `relative_error`; an output whose errors are no larger than
    the rounding of its numbers counts as known. One that is constant has nothing else.

    Args:
        game: the game, which knows how large its outputs are.
        values: `(outputs, n)`.
        standard_errors: `(outputs, n)`.
        outputs: numbers of the outputs that count, all by default.
    """
    return float(_error(game, values, standard_errors, outputs))


def _error(
    game: Game, values: Tensor, standard_errors: Tensor, outputs: Sequence[int] | None = None
) -> Tensor:
    """The same, which a GPU may still be computing."""
    rounding = ROUNDING_REDUCED if game.is_reduced else ROUNDING
    ends = torch.maximum(game.grand.abs(), game.empty.abs()).to(standard_errors)
    sizes = torch.maximum(ends, values.abs().amax(-1).to(ends))  # of its own: another may be far larger
    known = standard_errors.norm(dim=-1, keepdim=True) <= rounding * sizes[:, None]
    errors = torch.where(known, 0.0, standard_errors)
    if outputs is not None:
        values, errors = values[list(outputs)], errors[list(outputs)]
    return largest_ratio(values, errors)


def check_plan(budget: int | None, precision: float | None) -> None:
    """Raises if no estimator could work with the budget or the precision."""
    if budget is not None and whole_number(budget, "The budget", most=MOST_EVALUATIONS) < 1:
        raise ProtoPFaithError(f"The budget is {budget} evaluations; give at least one.")
    check_precision(precision)


def _checked_outputs(outputs: Any, game: Game) -> list[int] | None:
    if outputs is None:
        return None
    return numbers_below(game.n_outputs, outputs, "The outputs whose precision counts")


def _check_progress(progress: Any) -> None:
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ProtoPFaithError(
            "The progress must be True, False, None or a function of (evaluations done, evaluations "
            f"expected), not {shown(progress)}."
        )
    if callable(progress):
        check_listener(progress, EVALUATIONS)


@contextmanager
def _reporting(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """What the estimator reports to: the given function, a progress bar for `True`, otherwise nothing."""
    if callable(progress):
        with passing_through(progress) as tell:
            yield tell
    elif not progress:
        yield None
    else:
        with Bar() as bar:
            bar.begin("evaluations")
            yield lambda done, expected: bar.update(done=done, total=expected)
