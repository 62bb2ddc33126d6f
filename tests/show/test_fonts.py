from __future__ import annotations

import io
import logging
import warnings

import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from protopfaith.show import fonts
from protopfaith.show.plain import without_math


def drawn(name: str) -> Figure:
    figure = Figure()
    figure.text(0.1, 0.5, name)
    return figure


def letters_of(family: str) -> set[int]:
    return set(font_manager.get_font(font_manager.findfont(family)).get_charmap())


def test_letters_come_from_another_font_that_has_them() -> None:
    """Of the fonts that come with matplotlib, STIX has some that the usual one lacks."""
    letter = chr(min(one for one in letters_of("STIXGeneral") - letters_of("DejaVu Sans") if one > 0x250))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without_math(drawn(f"bird {letter}")).savefig(io.BytesIO(), format="png")
    with pytest.warns(UserWarning, match="missing from"):
        drawn(f"bird {letter}").savefig(io.BytesIO(), format="png")


def test_letters_of_no_font_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    fonts._tell.cache_clear()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            without_math(drawn("bird \U000f0000"))  # for private use: nobody draws it
    assert len([one for one in caplog.records if "No installed font" in one.getMessage()]) == 1


def test_other_texts_keep_their_font() -> None:
    figure = without_math(drawn("Épervier d\u2019Europe"))
    assert figure.texts[0].get_fontfamily() == drawn("x").texts[0].get_fontfamily()
