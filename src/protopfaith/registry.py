"""One way in for every kind of extension: a decorated function or class, picked up by a plain dict."""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TypeVar

from protopfaith.arguments import named, shown
from protopfaith.errors import ProtoPFaithError, is_out_of_memory
from protopfaith.files import reason

T = TypeVar("T")

EXTENSIONS_VARIABLE = "PROTOPFAITH_IMPORT"
"""Of the environment: the user's own modules, which every process of ours imports."""
MOST_NAMED = 60  # of the known names in a message: a network may have a thousand classes


def import_modules(package: str, path: Iterable[str]) -> None:
    """Imports all modules of a package, for what they register: a new file is all that an extension takes.

    To be called in the package's `__init__`, as `import_modules(__name__, __path__)`.
    """
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")


def extensions() -> list[str]:
    """The user's own modules that this program has imported, for workers to import them, too."""
    return os.environ.get(EXTENSIONS_VARIABLE, "").split()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ends a sentence about an unknown name: the nearest known one, then all of them or many."""
    known = sorted(known)
    in_lower_case = {one.lower(): one for one in known} | {one: one for one in known}
    nearest = difflib.get_close_matches(name[:80], known, n=1, cutoff=0.5)
    nearest = difflib.get_close_matches(name[:80].lower(), in_lower_case, n=1, cutoff=0.8) or nearest
    hint = f"did you mean {in_lower_case[nearest[0]]!r}? Known" if nearest else "known"
    more = f", ... ({len(known)} in all)" if len(known) > MOST_NAMED else ""
    return f"{hint}: {', '.join(known[:MOST_NAMED])}{more}."


def nothing_named(kind: str, name: str, known: Iterable[str]) -> ProtoPFaithError:
    """What to raise for a name of nothing."""
    return ProtoPFaithError(f"There is no {kind} named {shown(named(name))}; {did_you_mean(name, known)}")


@contextmanager
def borrowed(what: str, function: Callable[..., object]) -> Iterator[None]:
    """While a registered function runs: what that of somebody else raises, or that it exits, is told as its
    fault, with the line. What ours raise stays what it is.

    Args:
        what: the function, for people
        function: that is called

    >>> with borrowed("The data set 'shells'", int):
    ...     int("beach")
    Traceback (most recent call last):
        ...
    protopfaith.errors.ProtoPFaithError: The data set 'shells' fails with ...
    """
    try:
        yield
    except ProtoPFaithError:
        raise
    except (Exception, SystemExit) as error:
        if _is_ours(function) or is_out_of_memory(error):
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {reason(error)}"
        place = f"line {frame.lineno} of {Path(frame.filename).name}"
        raise ProtoPFaithError(f"{what} fails with {why} ({place}); correct it.") from error


def _is_ours(function: Callable[..., object]) -> bool:
    plain = function.func if isinstance(function, partial) else function
    return (getattr(plain, "__module__", None) or "").partition(".")[0] == "protopfaith"


class Registry(dict[str, T]):
    """Named things of one kind.

    >>> SHAPES: Registry[type] = Registry("shape")
    >>> @SHAPES.register("circle")
    ... class Circle: ...
    >>> SHAPES["circle"].__name__
    'Circle'
    """

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def register(self, name: str) -> Callable[[T], T]:
        if not isinstance(name, str):
            raise TypeError(f"a {self.kind} is registered under a name, not {shown(name)}")

        def add(thing: T) -> T:
            if name in self.keys():
                raise ValueError(f"there is already a {self.kind} named {name!r}")
            self[name] = thing
            return thing

        return add

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str):  # it may not even be hashable
            raise ProtoPFaithError(
                f"A {self.kind} has a name, such as {next(iter(self), '...')!r}, not {shown(name)}."
            )
        return super().__getitem__(name)

    def __missing__(self, name: str) -> T:
        raise self.unknown(name, self)

    def unknown(self, name: str, known: Iterable[str], others: str = "") -> ProtoPFaithError:
        """What to raise for a name that is none of the `known`; `others` says where else it is not."""
        return ProtoPFaithError(
            f"There is no {self.kind} named {shown(name)}{others}; "
            f"{did_you_mean(name, known).removesuffix('.')}; "
            "if it is your own, give --import MODULE before the command (in Python, import it)."
        )
