"""Plain mappings (from YAML) to frozen dataclasses and back, strictly: a typo is an error that names it.

Supported field types: bool, int, float, str, Path, None, `X | None`, `Literal`, `tuple`, `dict`,
other dataclasses. A field may say what it means, and carry bounds (`at_least`, `above`, `at_most`), see
`setting`; bounds of a tuple hold for each of its numbers.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import types
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import did_you_mean
from protopfaith.yamlfile import parse_yaml

T = TypeVar("T")
BOUNDS = {
    "at_least": (operator.ge, "at least"),
    "above": (operator.gt, "more than"),
    "at_most": (operator.le, "at most"),
}


def setting(default: T, meaning: str, **bounds: float) -> T:
    """A field of a dataclass: its default, its meaning in one line for people, and its bounds.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Walk:
    ...     steps: int = setting(10, "how many", at_least=1)
    >>> Walk().steps, dataclasses.fields(Walk)[0].metadata["meaning"]
    (10, 'how many')
    """
    return dataclasses.field(default=default, metadata={"meaning": meaning, **bounds})


def section(kind: Callable[[], T], meaning: str) -> T:
    """The same for a field that holds a dataclass or a dict of its own."""
    return dataclasses.field(default_factory=kind, metadata={"meaning": meaning})


@dataclasses.dataclass(frozen=True)
class Unparsed:
    """A value typed on the command line: what YAML makes of it, or the very text where text is wanted."""

    text: str

    @property
    def parsed(self) -> Any:
        try:
            return parse_yaml(self.text, "The value")
        except ProtoPFaithError:
            return self.text


def from_dict(kind: type[T], values: Any, where: str = "") -> T:
    """An instance of the dataclass `kind`; `where` is the dotted key that leads to it.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Point:
    ...     x: float = 0.0
    >>> from_dict(Point, {"x": 1})
    Point(x=1.0)
    """
    if not isinstance(values, Mapping):
        raise ProtoPFaithError(
            f"The recipe's {where or 'top level'!r} must hold keys and values, not {shown(values)}."
        )
    hints, fields = _hints(kind), {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    arguments = {}
    for key, value in values.items():
        if key not in fields:
            raise ProtoPFaithError(
                f"The recipe has no key {_join(where, str(key)[:60])!r}; "
                f"{did_you_mean(str(key)[:60], fields)}"
            )
        arguments[key] = convert(hints[key], value, _join(where, key))
        _check_bounds(arguments[key], fields[key].metadata, _join(where, key))
    return kind(**arguments)


def to_dict(value: Any) -> Any:
    """The plain mapping behind a dataclass: only dicts, lists, strings, numbers, booleans and None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_dict(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_dict(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_dict(entry) for entry in value]
    return value


def convert(kind: Any, value: Any, where: str) -> Any:
    """`value` as the type `kind`, or an error that names the key and what it expects."""
    if isinstance(value, Unparsed):
        return _convert_unparsed(kind, value, where)
    if dataclasses.is_dataclass(kind):
        return from_dict(kind, value, where)  # type: ignore[arg-type]
    converter = CONVERTERS.get(get_origin(kind) or kind, _convert_scalar)
    return converter(kind, value, where)


def _convert_unparsed(kind: Any, value: Unparsed, where: str) -> Any:
    try:
        return convert(kind, value.parsed, where)
    except ProtoPFaithError:
        choices = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
        if str in choices:  # a folder named 2024 is not a number
            return value.text
        raise


def _convert_literal(kind: Any, value: Any, where: str) -> Any:
    if isinstance(value, (str, int)) and value in get_args(kind):
        return value
    hint = did_you_mean(shown(value), [str(choice) for choice in get_args(kind)])
    raise ProtoPFaithError(f"The recipe's {where!r} cannot be {shown(value)}; {hint}")


def _convert_dict(kind: Any, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise _ill_typed(kind, value, where)
    return {str(k): v.parsed if isinstance(v, Unparsed) else v for k, v in value.items()}


def _convert_scalar(kind: Any, value: Any, where: str) -> Any:
    if (
        kind is Any
        or (type(value) is kind and kind is not float)
        or (kind is Path and isinstance(value, Path))
    ):
        return value
    if kind is float and not isinstance(value, bool):
        try:  # YAML reads 1e-4 as text (it wants 1.0e-4): people write the former
            number = float(value)
            if math.isfinite(number):
                return number
        except (TypeError, ValueError, OverflowError):
            pass
    raise _ill_typed(kind, value, where)


def _convert_union(kind: Any, value: Any, where: str) -> Any:
    choices = get_args(kind)
    if value is None and type(None) in choices:
        return None
    for choice in choices:
        if choice is not type(None):
            try:
                return convert(choice, value, where)
            except ProtoPFaithError:
                continue
    raise _ill_typed(kind, value, where)


def _convert_tuple(kind: Any, value: Any, where: str) -> tuple[Any, ...]:
    entries = get_args(kind)
    if not isinstance(value, (list, tuple)):
        raise _ill_typed(kind, value, where)
    if len(entries) == 2 and entries[1] is Ellipsis:
        entries = (entries[0],) * len(value)
    if len(entries) != len(value):
        raise _ill_typed(kind, value, where)
    return tuple(convert(entry, item, where) for entry, item in zip(entries, value, strict=True))


CONVERTERS = {
    Union: _convert_union,
    types.UnionType: _convert_union,
    Literal: _convert_literal,
    tuple: _convert_tuple,
    dict: _convert_dict,
}


def _check_bounds(value: Any, bounds: Mapping[str, float], where: str) -> None:
    if value is None:
        return
    numbers = value if isinstance(value, tuple) else (value,)
    for name, (holds, words) in BOUNDS.items():
        if name in bounds and not all(holds(number, bounds[name]) for number in numbers):
            raise ProtoPFaithError(
                f"The recipe's {where!r} must be {words} {bounds[name]}, not {shown(value)}."
            )


def _ill_typed(kind: Any, value: Any, where: str) -> ProtoPFaithError:
    return ProtoPFaithError(
        f"The recipe's {where!r} must be {describe(kind)}, not {shown(value)}{_instead(kind, value)}."
    )


def _instead(kind: Any, value: Any) -> str:
    """One number where a list of several belongs: how to write that."""
    for entry in (kind, *get_args(kind)):
        if (
            get_origin(entry) is tuple
            and type(value) in get_args(entry)
            and get_args(entry)[-1] is not Ellipsis
        ):
            return f"; write {[value] * len(get_args(entry))}"
    return ""


_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "text",
    type(None): "null",
    dict: "a mapping",
    Path: "a path",
}


def describe(kind: Any) -> str:
    """A type in words, such as "a whole number or null"."""
    origin, entries = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(entry) for entry in entries)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, entries))
    if origin is tuple:
        if entries[-1] is Ellipsis:
            return f"a list (each entry {describe(entries[0])})"
        return f"a list of {len(entries)} (" + ", ".join(describe(entry) for entry in entries) + ")"
    return _WORDS.get(origin or kind, str(kind))


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
