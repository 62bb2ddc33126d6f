"""How sharp a map is, in words that need no statistics: on which side regions stand, and how strongly."""

from __future__ import annotations

from protopfaith.show.wording.numbers import percent

LEAST = 1e-3  # relative error below which nobody needs to know more
HARDLY = 0.5  # relative error above which strengths say little


def sides(colored: int, regions: int, do: str = "speak for or against") -> str:
    """Of how many regions it is clear what they do.

    >>> sides(33, 144)
    '33 of 144 regions are colored: it is clear whether they speak for or against.'
    """
    if regions == 1 and colored:
        return "The image is one region, and colored as a whole."
    if not colored:
        return f"No region is colored: it is not clear yet whether they {do}."
    return f"{colored} of {regions} regions are colored: it is clear whether they {do}."


def hard(evaluations: int, goal: str) -> str:
    """What is said of an image whose budget was spent before its map was as precise as it was to be.

    >>> hard(1024, "±10%")
    'This image is hard: 1,024 evaluations did not suffice for ±10%. More of them give a sharper map.'
    """
    spent = f"{evaluations:,} evaluations"
    return f"This image is hard: {spent} did not suffice for {goal}. More of them give a sharper map."


def strength(error: float) -> str:
    """How well it is known how much a region matters, from a map's relative error.

    >>> strength(0.12), strength(0.0), strength(0.6), strength(1.4)
    ('known to about ±12%', 'known exactly', 'hardly known yet (±60%)', 'not known yet')
    >>> strength(5e-7)
    'known to within ±0.1%'
    """
    if error == 0:
        return "known exactly"
    if error >= 1:
        return "not known yet"
    if error < LEAST:
        return "known to within ±0.1%"
    return f"hardly known yet (±{percent(error)})" if error > HARDLY else f"known to about ±{percent(error)}"
