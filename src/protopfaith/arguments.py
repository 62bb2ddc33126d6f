"""Checks of what a caller gives, in one sentence each: what was wrong, what is expected."""

from __future__ import annotations

import math
import operator
import os
import reprlib
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from protopfaith.errors import ProtoPFaithError

LARGEST_SEED = 2**32 - 1

_short = reprlib.Repr()
_short.maxlevel, _short.maxdict, _short.maxlist, _short.maxtuple = 3, 4, 6, 6
_short.maxstring = _short.maxother = 80


def shown(value: Any) -> str:
    """A value in a message: its `repr`, short whatever it holds.

    >>> shown(list(range(1000)))
    '[0, 1, 2, 3, 4, 5, ...]'
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return "a number of more than 40 digits"
    if hasattr(value, "is_nested") and odd_kind(value):  # its content says nothing of what is wrong
        return f"a tensor that is {odd_kind(value)}"
    try:
        text = " ".join(_short.repr(value).split())
    except Exception:  # a repr of somebody else's
        text = f"a {type(value).__name__}"
    return text if len(text) <= 110 else text[:100] + ", ..."


def some_of(names: Iterable[str], most: int = 3) -> str:
    """The first of many names in a message.

    >>> some_of(["a", "b", "c", "d"]), some_of(["a", "b"])
    ('a, b, c, ...', 'a, b')
    """
    first = list(islice(names, most + 1))
    return ", ".join(first[:most]) + (", ..." if len(first) > most else "")


def named(path: Path | str) -> str:
    """A path in a message: on one line, and printable whatever its bytes are."""
    return "".join(
        character if character.isprintable() else repr(character)[1:-1]
        for character in os.fspath(path).encode("utf-8", "backslashreplace").decode()
    )


def is_text(path: Path | str) -> bool:
    """Whether a path is made of characters; names of files may be any bytes.

    >>> is_text("bird.png"), is_text("bird\\udcff.png")
    (True, False)
    """
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def whole_number(value: Any, what: str, *, least: int | None = None, most: int | None = None) -> int:
    """`value` as an int, which it must be already (of any library), within bounds.

    >>> whole_number(3, "The budget", least=1)
    3
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ProtoPFaithError(f"{what} must be a whole number, not {shown(value)}.") from None
    if (least is not None and number < least) or (most is not None and number > most):
        raise ProtoPFaithError(f"{what} must be {_range(least, most)}, not {shown(number)}.")
    return number


def finite_number(
    value: Any,
    what: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> float:
    """`value` as a finite float within bounds.

    >>> finite_number(1, "The noise", above=0)
    1.0
    """
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ProtoPFaithError(f"{what} must be a number, not {shown(value)}.") from None
    if not math.isfinite(number):
        raise ProtoPFaithError(f"{what} must be a finite number, not {number}.")
    if above is not None and not number > above:
        raise ProtoPFaithError(f"{what} must be more than {above:g}, not {number:g}.")
    if (least is not None and number < least) or (most is not None and number > most):
        raise ProtoPFaithError(f"{what} must be {_range(least, most)}, not {number:g}.")
    return number


def seed_number(value: Any) -> int:
    """A seed: a whole number from 0 to 2**32 - 1, which every library takes.

    >>> seed_number(7)
    7
    """
    return whole_number(value, "The seed", least=0, most=LARGEST_SEED)


def instance(value: Any, kinds: type | tuple[type, ...], what: str, expected: str) -> Any:
    """`value`, if it is an instance of one of the kinds.

    >>> instance("small", str, "The encoder", "a name")
    'small'
    """
    if not isinstance(value, kinds):
        raise ProtoPFaithError(f"{what} must be {expected}, not {shown(value)}.")
    return value


def tensor(value: Any, what: str, expected: str, *dimensions: int) -> Any:
    """`value`, if it is a tensor with one of these numbers of dimensions and has numbers to compute with.

    >>> import torch
    >>> tensor(torch.zeros(2, 3), "A map", "height x width", 2).shape
    torch.Size([2, 3])
    """
    count = getattr(value, "dim", None)
    if not callable(count):
        raise ProtoPFaithError(f"{what} must be a tensor of {expected}, not {shown(value)}.")
    plain_tensor(value, what, expected)
    if count() not in dimensions:
        raise ProtoPFaithError(f"{what} must be {expected}, not of shape {tuple(value.shape)}.")
    return value


def plain_tensor(value: Any, what: str, expected: str) -> Any:
    """`value`, if it is a tensor with a real number in every place: not sparse, nested, quantized, without
    content (meta) or of 8-bit floats, which most functions of torch do not take.

    >>> import torch
    >>> plain_tensor(torch.zeros(2), "The values", "a tensor").shape
    torch.Size([2])
    """
    kind = odd_kind(value)
    if kind:
        raise ProtoPFaithError(f"{what} must be {expected} with real numbers in it, not {kind}.")
    return value


def odd_kind(value: Any) -> str:
    """What keeps a tensor from being a plain one, in a few words; nothing where it is one.

    >>> import torch
    >>> odd_kind(torch.zeros(2)), odd_kind(torch.zeros(2, device="meta"))
    ('', 'without content (on meta)')
    """
    kinds = {
        "nested": value.is_nested,
        "without content (on meta)": value.is_meta,
        "quantized": value.is_quantized,
        f"{value.layout}".removeprefix("torch."): f"{value.layout}" != "torch.strided",
        type_name(value): value.is_complex() or "float8" in f"{value.dtype}",
    }
    return ", ".join(kind for kind, found in kinds.items() if found)


def type_name(value: Any) -> str:
    """The type of the numbers in a tensor or an array, whichever library has them.

    >>> import torch
    >>> type_name(torch.zeros(2, dtype=torch.uint8))
    'uint8'
    """
    return f"{value.dtype}".removeprefix("torch.")


def not_empty(value: Any, what: str) -> Any:
    """`value`, if it is not the empty text, which as a path would be the present folder.

    >>> not_empty("bird.png", "The image")
    'bird.png'
    """
    if isinstance(value, str) and not value:
        raise ProtoPFaithError(f"{what} is an empty text; give a path.")
    return value


def path(value: Any, what: str) -> Path:
    """`value` as a path, which it must name already: text or a path.

    >>> path("bird.png", "The image").name
    'bird.png'
    """
    found = Path(not_empty(instance(value, (str, os.PathLike), what, "a path"), what))
    if "\0" in str(found):
        raise ProtoPFaithError(f"{what} must be a path, and {named(found)} has a null byte in it.")
    return found


def numbers_below(count: int, value: Any, what: str) -> list[int]:
    """Numbers from 0 to `count` - 1, at least one, from a list, an array, a tensor or whatever gives them.

    >>> numbers_below(3, range(2), "The outputs")
    [0, 1]
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ProtoPFaithError(f"{what} are {shown(value)}; give them as a list of numbers.")
    try:  # as many as there can be, and one more: something may give them without end
        given = list(islice(iter(value), 10 * count + 1000))
        found = [whole_number(one, what, least=0, most=count - 1) for one in given]
    except (ProtoPFaithError, TypeError, RuntimeError):  # no list at all, as an array without dimensions
        found = []
    if not found:
        raise ProtoPFaithError(
            f"{what} are {shown(value)}; give some of the numbers from 0 to {count - 1}, in a list."
        )
    return found


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f"from {least:,} to {most:,}"
    return f"at least {least:,}" if least is not None else f"at most {most:,}"
