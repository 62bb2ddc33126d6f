from __future__ import annotations

import io

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from protopfaith.show.plain import without_math


def drawn(name: str) -> Figure:
    figure = Figure()
    axes = figure.subplots()
    axes.set_title(name)
    axes.set_xlabel(name)
    axes.plot([0, 1], label=name)
    axes.legend()
    figure.text(0.1, 0.1, name)
    return figure


def test_a_name_with_dollars_is_drawn_and_not_parsed() -> None:
    name = r"cost_$\nothing_$.png"  # no formula that matplotlib knows
    with pytest.raises(ValueError, match="nothing"):
        drawn(name).savefig(io.BytesIO())
    without_math(drawn(name)).savefig(io.BytesIO(), format="png")


def test_texts_without_dollars_look_as_before() -> None:
    pictures = []
    for figure in (drawn("a plain name"), without_math(drawn("a plain name"))):
        with io.BytesIO() as file:
            figure.savefig(file, format="png")
            pictures.append(file.getvalue())
    assert pictures[0] == pictures[1]


def test_somebody_s_own_wish_for_latex_is_not_followed() -> None:
    with mpl.rc_context({"text.usetex": True}):
        figure = Figure()
        figure.text(0.5, 0.5, "a_b")
    assert not any(text.get_usetex() for text in without_math(figure).texts)
