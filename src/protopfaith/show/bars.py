"""Bars beside their labels and numbers: what a table of bars shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BarRow:
    """A row: a label, a bar from zero, and the number. Places are in percent of the track."""

    label: str
    text: str
    kind: str  # "plus", "minus" or "neutral"
    left: float
    width: float
    zero: float
    detail: str = ""
    total: bool = False


@dataclass(frozen=True)
class Bars:
    """A table of bars on one scale."""

    caption: str
    rows: tuple[BarRow, ...]


PLAIN = (0.01, 1e5)  # sizes of numbers that are written with as many decimals each


@dataclass(frozen=True)
class Term:
    """What a sum is made of; neutral terms are the same for all images, so they have no color."""

    label: str
    value: float
    detail: str = ""
    neutral: bool = False


def make_bar(
    term: Term, span: float, text: str, *, low: float = -1.0, high: float = 1.0, total: bool = False
) -> BarRow:
    """A bar on a track that goes from `low` to `high` times `span`.

    >>> make_bar(Term("prototype 3", -1.0), 2.0, "-1.0").left
    25.0
    """
    zero = -low / (high - low) * 100
    width = min(abs(term.value) / span / (high - low) * 100, 100)
    left = zero if term.value >= 0 else zero - width
    kind = "neutral" if term.neutral else "plus" if term.value >= 0 else "minus"
    return BarRow(
        term.label, text, kind, round(max(left, 0), 2), round(width, 2), round(zero, 2), term.detail, total
    )


def share_bars(caption: str, shares: Sequence[tuple[str, float, str]]) -> Bars:
    """Shares from 0 to 1: label, share, and how it is written."""
    return Bars(
        caption, tuple(make_bar(Term(label, share), 1.0, text, low=0.0) for label, share, text in shares)
    )


@dataclass(frozen=True)
class Sum:
    """Terms and what they add up to."""

    caption: str
    terms: Sequence[Term]
    total: Term


def sum_bars(*sums: Sum) -> list[Bars]:
    """Tables of terms with their sum below, all on one scale; room for negative ones only where needed."""
    values = [term.value for one in sums for term in (*one.terms, one.total)]
    span = max([abs(value) for value in values] + [1e-12])
    low = min([1.05 * value / span for value in values] + [-0.02])
    high = max([1.02 * value / span for value in values] + [0.02])
    return [
        Bars(
            one.caption,
            (
                *(make_bar(term, span, _signed(term.value, span), low=low, high=high) for term in one.terms),
                make_bar(one.total, span, _signed(one.total.value, span), low=low, high=high, total=True),
            ),
        )
        for one in sums
    ]


def _signed(value: float, span: float) -> str:
    """A term of a sum whose largest has the size `span`: of very small and large ones three digits count."""
    if not PLAIN[0] <= span < PLAIN[1]:
        return f"{value:+.3g}"
    return f"{value:+.3f}" if abs(value) < 10 else f"{value:+.2f}"
