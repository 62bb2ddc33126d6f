"""How large things from elsewhere may be; what is declared is checked before any memory is taken.

Whoever has larger ones raises a limit by an environment variable, such as `PROTOPFAITH_MAX_PIXELS=200000000`.
"""

from __future__ import annotations

import os

from protopfaith.errors import ProtoPFaithError

MEMORY, USUAL_MEMORY = "PROTOPFAITH_MAX_MEMORY", 16_000_000_000
DEFAULTS = {
    "PROTOPFAITH_MAX_PIXELS": 64_000_000,
    "PROTOPFAITH_MAX_SIDE": 4_096,
    "PROTOPFAITH_MAX_FILE": 2_000_000_000,
    "PROTOPFAITH_MAX_PLAYERS": 100_000,
}
"""Pixels of an image file; rows or columns at training size; bytes of the arrays in an `.npz` file;
players of a game."""


def limit(name: str) -> int:
    """The limit called `name`, from the environment or as usual.

    >>> limit("PROTOPFAITH_MAX_SIDE")
    4096
    """
    text = os.environ.get(name)
    if not text:
        return DEFAULTS[name]
    if not text.isdecimal() or not int(text[:19]) > 0 or len(text) > 18:
        raise ProtoPFaithError(
            f"The environment variable {name} must be a whole number above zero, such as "
            f"{DEFAULTS.get(name, USUAL_MEMORY)}, not {text[:40]!r}."
        )
    return int(text)


def memory_limit(there: int) -> int:
    """How many bytes training may take: what there is, or what `PROTOPFAITH_MAX_MEMORY` says.

    >>> memory_limit(1000)
    1000
    """
    return limit(MEMORY) if os.environ.get(MEMORY) else there


def check_limits() -> None:
    """Raises if one of the limits in the environment is no number, before any is needed."""
    for name in DEFAULTS:
        limit(name)
    memory_limit(USUAL_MEMORY)


def check_players(count: int) -> None:
    """Raises if a game has too many players: with a thousand coalitions each takes about 80 KB."""
    most = limit("PROTOPFAITH_MAX_PLAYERS")
    if count > most:
        raise ProtoPFaithError(
            f"{count:,} players are more than {most:,}, which take many gigabytes; take larger regions, or "
            "raise the limit by the environment variable PROTOPFAITH_MAX_PLAYERS."
        )


def check_pixels(width: int, height: int, what: str) -> None:
    """Raises if an image of that size is too large, or has no pixels."""
    most = limit("PROTOPFAITH_MAX_PIXELS")
    if width < 1 or height < 1:
        raise ProtoPFaithError(f"{what} has {width} x {height} pixels; give an image that has some.")
    if width * height > most:
        raise ProtoPFaithError(
            f"{what} has {width:,} x {height:,} pixels, more than {most:,}; make it smaller, or raise the "
            "limit by the environment variable PROTOPFAITH_MAX_PIXELS."
        )
