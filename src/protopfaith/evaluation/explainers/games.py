"""Explainers that play the game: estimators of Shapley values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from protopfaith.arguments import instance
from protopfaith.evaluation.explainers.common import (
    EXPLAINERS,
    Explainable,
    Explained,
    Options,
    check_subject,
    density,
    selected_distances,
)
from protopfaith.shapley import ESTIMATORS, Attribution, Game, check_estimate, estimate


def game_of(
    model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options, *, check: bool = False
) -> Game:
    """The game of some prototypes' distances on one image; `check`: that it is the same at every call."""
    prototypes = check_subject(model, image, prototypes, options)
    return Game(
        selected_distances(model, prototypes),
        image,
        options.players,
        options.baseline,
        batch_size=options.batch_size,
        memory=options.memory,
        autocast=options.autocast,
        check=check,
    )


def from_attribution(attribution: Attribution) -> Explained:
    """An attribution of distances as maps of similarity."""
    instance(attribution, Attribution, "What maps are made of", "an Attribution")
    players = attribution.players
    return Explained(-density(attribution.values, players), True, players.flat, attribution.without_state())


ESTIMATES: dict[str, tuple[str, dict[str, str]]] = {
    "ours": ("default", {}),
    "owen": ("owen", {}),
    "dasp": ("dasp", {"sizes": "sizes", "batch_size": "moment_batch"}),
    "moment_path": ("moment_path", {"nodes": "nodes", "batch_size": "moment_batch"}),
}
"""Explainers that are estimators: the estimator, and its own options by the names they have in Options."""


def estimated(name: str, game: Game, options: Options) -> Attribution:
    """What the explainer makes of a game."""
    method, more = _estimator_of(name, options)
    return estimate(game, method, budget=_allowed(method, options), seed=options.seed, **more)


def check_estimated(name: str, game: Game, options: Options) -> None:
    """Raises if the explainer could not work with a game; evaluates nothing."""
    method, more = _estimator_of(name, options)
    check_estimate(game, method, budget=_allowed(method, options), **more)


def _allowed(method: str, options: Options) -> int | None:
    """The budget that the estimator is told: none, where it does not sample and takes what it needs."""
    return options.budget if ESTIMATORS.traits(method).samples else None


def _estimator_of(name: str, options: Options) -> tuple[str, dict[str, Any]]:
    """The explainer's estimator, and the options of its own."""
    method, own = ESTIMATES[name]
    return method, {option: getattr(options, field) for option, field in own.items()}


def _played(
    name: str, model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options
) -> Explained:
    if ESTIMATORS.traits(ESTIMATES[name][0]).full_precision:
        options = replace(options, autocast=None)
    found = estimated(name, game_of(model, image, prototypes, options), options)
    return from_attribution(found)


@EXPLAINERS.register("ours")
def ours(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """The default estimator: samples the real network."""
    return _played("ours", model, image, prototypes, options)


@EXPLAINERS.register("owen")
def owen(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """Plain Owen sampling: the estimator of that name, as it comes."""
    return _played("owen", model, image, prototypes, options)


@EXPLAINERS.register("dasp")
def dasp(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """The paper's explainer: moment propagation, two passes per player and coalition size."""
    return _played("dasp", model, image, prototypes, options)


@EXPLAINERS.register("moment_path")
def moment_path(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """Moment propagation, one backward pass per density."""
    return _played("moment_path", model, image, prototypes, options)


@EXPLAINERS.register("reversed")
def reversed_ours(
    model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options
) -> Explained:
    """Ours with the sign turned: the worst order there is. A check of the metrics, not an explainer."""
    right = ours(model, image, prototypes, options)
    return replace(right, maps=-right.maps, attribution=None)
