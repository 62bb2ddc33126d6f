"""How sharp a map is, in words that need no statistics: on which side regions stand, and how strongly."""

from __future__ import annotations

from protopfaith.show.wording.numbers import percent


def sides(colored: int, regions: int, do: str = "speak for or against") -> str:
    """Of how many regions it is clear what they do.

    >>> sides(33, 144)
    '33 of 144 regions are colored: it is clear whether they speak for or against.'
    """
    if not colored:
        return f"No region is colored: it is not clear yet whether they {do}."
    return f"{colored} of {regions} regions are colored: it is clear whether they {do}."


def strength(error: float) -> str:
    """How well it is known how much a region matters, from a map's relative error.

    >>> strength(0.12), strength(0.0), strength(1.4)
    ('known to about ±12%', 'known exactly', 'not known yet')
    """
    if error == 0:
        return "known exactly"
    return f"known to about ±{percent(error)}" if error < 1 else "not known yet"
