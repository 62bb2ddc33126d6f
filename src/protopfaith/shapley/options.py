"""Options of estimators, checked by the estimator's own signature: wherever they come from, one sentence says
what is wrong."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import did_you_mean
from protopfaith.typed import Unparsed, convert, describe

# What every estimator is told by the names of its plan: no options of its own.
PLAN = {"game", "budget", "precision", "seed", "resume", "progress", "outputs"}
# Types that can be told apart; an option annotated otherwise is for its estimator to check.
PLAIN = (bool, int, float, str, type(None), Path, Ellipsis)


def check_names(name: str, estimator: Callable, options: Mapping[str, object]) -> None:
    """Raises if the estimator does not have one of the options."""
    parameters = inspect.signature(estimator).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    known = set(parameters) - PLAN
    for option in set(options) - known:
        raise ProtoPFaithError(
            f"The estimator {name!r} has no option {option!r}; {did_you_mean(option, known or ['(none)'])}"
        )


def typed_options(name: str, estimator: Callable, options: Mapping[str, object]) -> dict[str, Any]:
    """The options in the types of the estimator's annotations; texts of a command line come as
    `protopfaith.typed.Unparsed`.

    >>> def guess(game, *, times: int = 1): ...
    >>> typed_options("guess", guess, {"times": Unparsed("3")})
    {'times': 3}
    """
    kinds = _annotations(estimator)
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


def _annotations(estimator: Callable) -> dict[str, Any]:
    try:
        return get_type_hints(estimator)
    except (NameError, TypeError):  # names imported for type checkers alone, or an object that is called
        return {}


def _is_plain(kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType, tuple):
        return all(_is_plain(entry) for entry in get_args(kind))
    return kind in PLAIN or get_origin(kind) is Literal
