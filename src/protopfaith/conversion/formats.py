"""The formats that networks come in, found out by themselves or named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from protopfaith.arguments import named
from protopfaith.conversion.foreign import ForeignNetwork
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, is_folder
from protopfaith.registry import Registry


@dataclass(frozen=True)
class Asked:
    """What the caller of a conversion knows better than the file. None leaves it to the file, or to what its
    program does by default."""

    similarity: str | None = None
    epsilon: float | None = None
    size: int | None = None
    encoder: str | None = None


@dataclass(frozen=True)
class Format:
    """How files of another program look, and who reads them.

    Args:
        summary: what it is, as the end of "give ..."
        looks_like: whether a path may be of this format
        read: understands a path; raises a ProtoPFaithError that says why it cannot

    >>> FORMATS["protopnet"].summary
    'a .pth file of the original ProtoPNet'
    """

    summary: str
    looks_like: Callable[[Path], bool]
    read: Callable[[Path, Asked], ForeignNetwork]


FORMATS: Registry[Format] = Registry("format")


def read_network(path: Path, asked: Asked, name: str | None = None) -> ForeignNetwork:
    """Understands a checkpoint in the format `name`, or in the last registered one that it looks like.

    Any file may be one of the original program, so formats of the user's own come first.
    """
    if not is_file(path) and not is_folder(path):
        raise ProtoPFaithError(f"There is nothing at {named(path)[:300]}; give {_all_of_them()}.")
    if name is not None:
        return FORMATS[name].read(path, asked)
    for found in reversed(FORMATS.values()):
        if found.looks_like(path):
            return found.read(path, asked)
    raise ProtoPFaithError(f"{path} is no network of a known format; give {_all_of_them()}.")


def _all_of_them() -> str:
    return ", or ".join(found.summary for found in FORMATS.values())
