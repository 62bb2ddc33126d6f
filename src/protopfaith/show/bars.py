"""Bars beside their labels and numbers: what a table of bars shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A row: a label, a bar from zero, and the number. Places are in percent of the track."""

    label: str
    text: str
    positive: bool
    left: float
    width: float
    zero: float
    detail: str = ""
    total: bool = False


@dataclass(frozen=True)
class Bars:
    """A table of bars on one scale."""

    caption: str
    rows: tuple[Bar, ...]


def make_bar(
    label: str,
    value: float,
    span: float,
    text: str,
    *,
    zero: float = 50.0,
    detail: str = "",
    total: bool = False,
) -> Bar:
    """A bar from `zero` (percent of the track) whose full length stands for `span`.

    >>> make_bar("prototype 3", -1.0, 2.0, "-1.0").left
    25.0
    """
    width = min(abs(value) / span, 1) * (100 - zero)
    left = zero if value >= 0 else zero - width
    return Bar(label, text, value >= 0, round(left, 2), round(width, 2), zero, detail, total)


def sum_bars(caption: str, terms: Sequence[tuple[str, float, str]], total: float) -> Bars:
    """Terms (label, value, detail) and, below them, what they add up to."""
    span = max([abs(value) for _, value, _ in terms] + [abs(total), 1e-12])
    rows = [make_bar(label, value, span, f"{value:+.3f}", detail=detail) for label, value, detail in terms]
    rows.append(make_bar("sum", total, span, f"{total:+.3f}", total=True))
    return Bars(caption, tuple(rows))
