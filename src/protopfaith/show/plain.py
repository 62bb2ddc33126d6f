"""Text in figures that is not read as a formula, such as the name of a file cost_$_a_$.png."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protopfaith.show.fonts import give_letters

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def without_math(figure: Figure) -> Figure:
    """The figure, all of whose texts are taken literally, whatever dollars are in them, and drawn with fonts
    that have their letters.

    >>> from matplotlib.figure import Figure
    >>> without_math(Figure()).texts
    []
    """
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    for text in texts:
        text.set_parse_math(False)
        text.set_usetex(False)  # which somebody's own settings of matplotlib may ask for
    give_letters(texts)
    return figure
