"""Estimators by name, with what the others must know of each, and their options, checked by the estimator's
own signature: wherever these come from, one sentence says what is wrong."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from protopfaith.annotations import check_fields
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import Registry
from protopfaith.shapley.attribution import Attribution
from protopfaith.specs import DEFAULT, check_option_names
from protopfaith.typed import Unparsed, convert, describe

EstimatorFunction = Callable[..., Attribution]
# Types that can be told apart; an option annotated otherwise is for its estimator to check.
PLAIN = (bool, int, float, str, type(None), Path, Ellipsis)


@dataclass(frozen=True)
class Traits:
    """What an estimator says about itself where it is registered. All have defaults that are safe: an
    estimator that says nothing is asked once, for everything, and believed no more than its numbers say.

    Args:
        description: how values come about, for people: "They were ..."
        evaluates: it evaluates the game on coalitions. Otherwise its evaluations are passes of its own kind,
            on random variables for example, of which only it can report progress
        per_output: the cost grows with the outputs, so that it is asked for few of them
        full_precision: it needs the function in float32: variances and small differences do not
            survive autocast
        planned: budget and precision decide how long it works; otherwise they do not matter to it

    >>> Traits(description="guessed").evaluates
    True
    """

    description: str = "estimated"
    evaluates: bool = True
    per_output: bool = False
    full_precision: bool = False
    planned: bool = True

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def samples(self) -> bool:
        """Whether it evaluates coalitions until they suffice, so that easy games can end early."""
        return self.planned and self.evaluates


def checked_by(check: Callable[..., None]) -> Callable[[EstimatorFunction], EstimatorFunction]:
    """An estimator with a check that can be called alone, before any work.

    Args:
        check: gets the game, the plan (`budget`, `precision`) and the estimator's options, and raises if the
            estimator cannot work with them; it evaluates nothing. The estimator calls it itself, too.
    """

    def attach(estimator: EstimatorFunction) -> EstimatorFunction:
        estimator.check = check  # type: ignore[attr-defined]
        return estimator

    return attach


class Estimators(Registry[EstimatorFunction]):
    """A registry whose entries have `Traits`.

    >>> KNOWN = Estimators("estimator")
    >>> @KNOWN.register("guess", description="guessed", per_output=True)
    ... def guess(game, **plan): ...
    >>> KNOWN.traits("guess").per_output, KNOWN.traits("guess").evaluates
    (True, True)
    """

    def __init__(self, kind: str):
        super().__init__(kind)
        self._traits: dict[str, Traits] = {}

    def __missing__(self, name: str) -> EstimatorFunction:
        raise self.unknown(name, [*self, DEFAULT])

    def register(self, name: str, **traits: Any) -> Callable[[EstimatorFunction], EstimatorFunction]:
        """Registers a function under `name`; the keywords are those of `Traits`."""
        declared, add = Traits(**traits), super().register(name)

        def add_both(function: EstimatorFunction) -> EstimatorFunction:
            add(function)
            self._traits[name] = declared
            return function

        return add_both

    def traits(self, name: str) -> Traits:
        """What the estimator says about itself; nothing but the defaults where the name is not known, as in a
        result of an estimator that is registered elsewhere."""
        return self._traits.get(name, Traits()) if isinstance(name, str) and name in self else Traits()


def typed_options(name: str, estimator: Callable, options: Mapping[str, object]) -> dict[str, Any]:
    """The options in the types of the estimator's annotations; raises if it does not have one of them, or
    not of that type. Texts of a command line come as `protopfaith.typed.Unparsed`.

    >>> def guess(game, *, times: int = 1): ...
    >>> typed_options("guess", guess, {"times": Unparsed("3")})
    {'times': 3}
    """
    parameters = inspect.signature(estimator).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        check_option_names(name, options, parameters)
    try:
        kinds = get_type_hints(estimator)
    except (NameError, TypeError):  # names imported for type checkers alone, or an object that is called
        kinds = {}
    return {option: _typed(name, option, kinds.get(option, Any), value) for option, value in options.items()}


def _typed(name: str, option: str, kind: Any, value: Any) -> Any:
    kind = kind if _is_plain(kind) else Any
    value = value.item() if isinstance(value, np.generic) else value
    try:
        return convert(kind, value, option)
    except ProtoPFaithError:
        given = value.text if isinstance(value, Unparsed) else value
        raise ProtoPFaithError(
            f"The option {option!r} of the estimator {name!r} is {describe(kind)}, not {given!r}."
        ) from None


def _is_plain(kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType, tuple):
        return all(_is_plain(entry) for entry in get_args(kind))
    return kind in PLAIN or get_origin(kind) is Literal
