"""The formats that networks come in, found out by themselves or named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from protopfaith.arguments import instance, named
from protopfaith.conversion.foreign import ForeignNetwork
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, is_folder
from protopfaith.registry import Registry, borrowed


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


class Formats(Registry[Format]):
    """A registry that takes nothing but formats."""

    def register(self, name: str) -> Callable[[Format], Format]:
        add = super().register(name)
        return lambda found: add(instance(found, Format, f"The format {name!r}", "a Format"))


FORMATS = Formats("format")


def read_network(path: Path, asked: Asked, name: str | None = None) -> ForeignNetwork:
    """Understands a checkpoint in the format `name`, or in the last registered one that it looks like.

    Any file may be one of the original program, so formats of the user's own come first.
    """
    if not is_file(path) and not is_folder(path):
        raise ProtoPFaithError(f"There is nothing at {named(path)[:300]}; give {_all_of_them()}.")
    if name is not None:
        return _read(name, FORMATS[name], path, asked)
    for known, found in reversed(FORMATS.items()):
        with borrowed(f"The format {known!r}", found.looks_like):
            fits = found.looks_like(path)
        if fits:
            return _read(known, found, path, asked)
    raise ProtoPFaithError(f"{path} is no network of a known format; give {_all_of_them()}.")


def _read(name: str, found: Format, path: Path, asked: Asked) -> ForeignNetwork:
    with borrowed(f"The format {name!r}", found.read):
        network = found.read(path, asked)
    return instance(network, ForeignNetwork, f"What the format {name!r} reads", "a ForeignNetwork")


def _all_of_them() -> str:
    return ", or ".join(found.summary for found in FORMATS.values())
