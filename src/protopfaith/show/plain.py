"""Texts in figures as they are: a file named cost_$_a_$.png is no formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def without_math(figure: Figure) -> Figure:
    """The figure, all of whose texts are taken literally, whatever dollars are in them.

    >>> from matplotlib.figure import Figure
    >>> without_math(Figure()).texts
    []
    """
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)
    return figure
