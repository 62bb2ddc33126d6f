"""What a visitor asks about an image: every field is checked here, since it comes from a browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from protopfaith.arguments import finite_number, shown, whole_number
from protopfaith.errors import ProtoPFaithError

Polygon = tuple[tuple[float, float], ...]
"""Corners of a region that was drawn, as shares of the image's width and height."""

BASELINES = ("zero", "blur", "mean")
FINEST, COARSEST = 0.005, 0.5  # precisions that can be asked for
USUAL_PRECISION = 0.05
MOST_DRAWN, MOST_CORNERS = 32, 2_000


@dataclass(frozen=True)
class Question:
    """What is asked about one image.

    Args:
        target: the class to explain; None for the one that the network chose.
        versus: another class to compare it with.
        players: "windows:8", "superpixels:60", "drawn", or "" for what is usual.
        drawn: the regions, where they are drawn by hand.
        baseline: what stands where a region is hidden.

    >>> Question.of({"players": "windows:16", "baseline": "blur"}, classes=8)
    Question(target=None, versus=None, players='windows:16', drawn=(), baseline='blur')
    """

    target: int | None = None
    versus: int | None = None
    players: str = ""
    drawn: tuple[Polygon, ...] = ()
    baseline: str = "zero"

    @staticmethod
    def of(said: Mapping[str, Any], classes: int, before: Question | None = None) -> Question:
        """The question that a browser's message asks.

        Args:
            said: the message; what it does not name stays as it was.
            classes: how many the network has.
            before: the question that is changed.
        """
        question = before or Question()
        known = {"target", "versus", "players", "drawn", "baseline"}
        for name in said:
            if name not in known:
                raise ProtoPFaithError(f"There is nothing named {shown(name)} to ask for.")
        if "target" in said:
            question = replace(question, target=_class(said["target"], classes))
        if "versus" in said:
            question = replace(question, versus=_class(said["versus"], classes))
        if "baseline" in said:
            question = replace(question, baseline=_one_of(said["baseline"], BASELINES, "baseline"))
        if "players" in said:
            question = replace(question, players=_players(said["players"]))
        if "drawn" in said:
            question = replace(question, drawn=_polygons(said["drawn"]), players="drawn")
        if question.players == "drawn" and not question.drawn:
            raise ProtoPFaithError("No region is drawn yet; draw one on the image first.")
        if question.versus is not None and question.target == question.versus:
            raise ProtoPFaithError("A class cannot be compared with itself; choose another one.")
        return question


def precision_of(value: Any) -> float:
    """A precision that a visitor may ask for.

    >>> precision_of("0.1")
    0.1
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ProtoPFaithError(f"A precision is a number such as 0.05, not {shown(value)}.") from None
    return min(max(finite_number(number, "The precision"), FINEST), COARSEST)


def is_short_number(text: str) -> bool:
    """Whether a text is a whole number of few enough digits: Python refuses to read those of thousands.

    >>> is_short_number("48"), is_short_number("9" * 5_000), is_short_number("-1")
    (True, False, False)
    """
    return text.isdecimal() and len(text) < 10


def regions_of(value: Any, count: int) -> tuple[int, ...]:
    """Numbers of regions, each once."""
    if not isinstance(value, list) or len(value) > count:
        raise ProtoPFaithError("The regions to hide are a list of their numbers.")
    return tuple(sorted({whole_number(one, "A region", least=0, most=count - 1) for one in value}))


def _class(value: Any, classes: int) -> int | None:
    return None if value is None else whole_number(value, "A class", least=0, most=classes - 1)


def _one_of(value: Any, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        raise ProtoPFaithError(f"The {what} is one of {', '.join(known)}, not {shown(value)}.")
    return value


def _players(value: Any) -> str:
    if value in ("", "drawn"):
        return value
    kind, _, number = str(value).partition(":")
    known = kind in ("windows", "superpixels") and is_short_number(number)
    if not known or not 2 <= int(number) <= 4_096:
        raise ProtoPFaithError(
            f"Regions are windows:8, superpixels:60 or drawn by hand, not {shown(str(value)[:60])}."
        )
    return f"{kind}:{int(number)}"


def _polygons(value: Any) -> tuple[Polygon, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_DRAWN:
        raise ProtoPFaithError(f"Draw between one and {MOST_DRAWN} regions.")
    return tuple(_polygon(one) for one in value)


def _polygon(value: Any) -> Polygon:
    if not isinstance(value, list) or not 3 <= len(value) <= MOST_CORNERS:
        raise ProtoPFaithError("A region that is drawn has at least three corners.")
    corners = []
    for corner in value:
        if not isinstance(corner, list) or len(corner) != 2:
            raise ProtoPFaithError("A corner of a region is two numbers.")
        x, y = (min(max(finite_number(number, "A corner of a region"), 0.0), 1.0) for number in corner)
        corners.append((x, y))
    return tuple(corners)
