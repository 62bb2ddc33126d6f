"""Checks the arguments of a call by the function's type hints: one sentence where one does not fit.

A public function begins with `check_arguments(itself, locals())`, a dataclass that people make has
`check_fields(self)` in its `__post_init__`. What a type does not tell (bounds, shapes) is checked where it
matters.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import operator
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from protopfaith.arguments import odd_kind, shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.typed import BOUNDS

LARGEST = 2**63  # whole numbers from here on fit into no tensor
LOOKED_AT = 1000  # entries of a list, at most: wrong ones are wrong from the start


def check_arguments(function: Callable, given: Mapping[str, Any]) -> None:
    """Raises if an argument is not what the function's annotation says. Annotations that cannot be checked,
    such as those of protocols, fit everything.

    Args:
        function: with annotations
        given: its arguments by name, such as `locals()` at its beginning

    >>> def half(number: float) -> float:
    ...     check_arguments(half, locals())
    ...     return number / 2
    >>> half("x")
    Traceback (most recent call last):
    protopfaith.errors.ProtoPFaithError: The argument 'number' of half must be a number, not 'x'.
    """
    for name, hint in _hints(function).items():
        if name in given and not fits(given[name], hint):
            where = getattr(function, "__qualname__", "it").removesuffix(".__init__")
            raise ProtoPFaithError(
                f"The argument {name!r} of {where} must be {described(hint)}, not {shown(given[name])}."
            )


def check_fields(made: Any) -> None:
    """The same for the fields of a dataclass, and the bounds in their metadata.

    Args:
        made: an instance
    """
    kind = type(made)
    check_arguments(kind, vars(made))
    for field in dataclasses.fields(kind):
        if field.metadata:
            _check_bounds(field, getattr(made, field.name), kind.__name__)


def _check_bounds(field: dataclasses.Field, value: Any, where: str) -> None:
    """Those of its metadata, as in `protopfaith.typed`."""
    value = value.tolist() if hasattr(value, "tolist") else value  # of a tensor or an array
    numbers = () if value is None else value if isinstance(value, (tuple, list)) else (value,)
    for name, (holds, words) in BOUNDS.items():
        if name in field.metadata and not all(holds(number, field.metadata[name]) for number in numbers):
            raise ProtoPFaithError(
                f"The argument {field.name!r} of {where} must be {words} {field.metadata[name]}, not "
                f"{shown(value)}."
            )


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the annotated type; numbers and sequences of any library count as such.

    >>> fits(3, float), fits(True, int), fits("abc", list[str] | None), fits([1, 2], tuple[int, int])
    (True, False, False, True)
    """
    if hint is str:  # most of what records of thousands of images hold
        return isinstance(value, str)
    origin, entries = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, entry) for entry in entries)
    if origin is Literal:
        return isinstance(value, (str, int, type(None))) and value in entries
    if origin is tuple:
        return _is_tuple(value, entries)
    if origin is not None and isinstance(origin, type):
        return _is_container(value, origin, entries)
    return _is_plain(value, hint)


def _is_plain(value: Any, kind: Any) -> bool:
    if kind in _PLAIN:
        return _PLAIN[kind](value)
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True  # Any, a type variable, a protocol
    return isinstance(value, kind) and not (hasattr(value, "is_nested") and odd_kind(value))


def _is_tuple(value: Any, entries: tuple[Any, ...]) -> bool:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        return False
    if isinstance(value, Mapping) or getattr(value, "ndim", 1) == 0:
        return False
    if len(entries) == 2 and entries[1] is Ellipsis:
        return _all_fit(value, entries[0])
    return len(value) == len(entries) and all(map(fits, value, entries))


def _is_container(value: Any, origin: type, entries: tuple[Any, ...]) -> bool:
    if issubclass(origin, Callable):  # type: ignore[arg-type]
        return callable(value)
    if issubclass(origin, Mapping):
        keys, values = entries
        return (
            isinstance(value, Mapping) and _all_fit(list(value), keys) and _all_fit([*value.values()], values)
        )
    if origin is type or not issubclass(origin, Iterable):
        return isinstance(value, origin)
    if isinstance(value, (str, bytes, Mapping)):
        return False  # a name where names belong: nobody means its letters
    is_listed = hasattr(value, "__len__") and hasattr(value, "__getitem__")  # an array and a tensor, too
    return _all_fit(value, entries[0]) if is_listed else isinstance(value, origin)


def _all_fit(values: Any, hint: Any) -> bool:
    if hasattr(values, "ndim") and values.ndim == 0:
        return False
    some = list(islice(values, LOOKED_AT))  # not by number: columns of pandas count in their own way
    if getattr(values, "ndim", 1) > 1 and not all(hasattr(one, "ndim") for one in some):
        return False  # a table of pandas, which gives the names of its columns
    return all(fits(one, hint) for one in some)


def _is_whole(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and abs(operator.index(value)) < LARGEST
    except (TypeError, ValueError, RuntimeError):
        return False


def _is_real(value: Any) -> bool:
    if isinstance(value, (bool, str, bytes, complex)) or getattr(value, "shape", ()) != ():
        return False
    try:
        return not math.isnan(float(value)) and not (isinstance(value, int) and abs(value) >= LARGEST)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return False


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


_PLAIN: dict[Any, Callable[[Any], bool]] = {
    int: _is_whole,
    float: _is_real,
    bool: _is_truth,
    Path: lambda value: isinstance(value, os.PathLike),
    type(None): lambda value: value is None,
    None: lambda value: value is None,
    Any: lambda value: True,
}

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    str: "text",
    Path: "a path",
    type(None): "None",
    None: "None",
}


def described(hint: Any) -> str:
    """A type in words.

    >>> described(int | None), described(list[str]), described(Literal["a", "b"])
    ('a whole number or None', 'a list of text', "one of 'a', 'b'")
    """
    origin, entries = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        *first, last = dict.fromkeys(described(entry) for entry in entries)
        return f"{', '.join(first)} or {last}" if first else last
    if origin is Literal:
        return "one of " + ", ".join(map(repr, entries))
    if origin is tuple:
        if entries[-1:] == (Ellipsis,):
            return f"a list of {described(entries[0])}"
        return f"{len(entries)} values ({', '.join(map(described, entries))})"
    if origin is not None and isinstance(origin, type):
        return _described_container(origin, entries)
    name = getattr(hint, "__name__", str(hint))
    return _WORDS[hint] if hint in _WORDS else f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def _described_container(origin: type, entries: tuple[Any, ...]) -> str:
    if issubclass(origin, Callable):  # type: ignore[arg-type]
        return "a function"
    if issubclass(origin, Mapping):
        return "a mapping"
    return f"a list of {described(entries[0])}" if issubclass(origin, Iterable) else f"a {origin.__name__}"


@cache
def _hints(owner: Any) -> dict[str, Any]:
    """The annotations, without those of names that are known to type checkers alone."""
    if isinstance(owner, type):
        places = [
            (vars(kind).get("__annotations__", {}), kind.__module__) for kind in reversed(owner.__mro__)
        ]
        written = {name: (text, home) for texts, home in places for name, text in texts.items()}
    else:
        single = [one for one in inspect.signature(owner).parameters.values() if one.kind not in _SEVERAL]
        written = {one.name: (one.annotation, owner.__module__) for one in single}
    hints = {name: _resolved(*one) for name, one in written.items()}
    return {name: hint for name, hint in hints.items() if hint is not _UNKNOWN}


_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_UNKNOWN = object()


def _resolved(annotation: Any, module: str) -> Any:
    if annotation is inspect.Parameter.empty:
        return _UNKNOWN
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, vars(sys.modules[module]))["it"]
    except Exception:  # a name that is known to type checkers alone
        return _UNKNOWN
