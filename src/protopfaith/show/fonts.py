"""Letters that the usual font of figures does not have, such as Chinese ones: another installed font, or one
sentence."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.text import Text

log = logging.getLogger(__name__)

WIDE = re.compile(r"CJK|Noto|Hei|Song|Ming|Gothic|Mincho|Unicode|Droid|WenQuanYi|PingFang|Nanum|Malgun")
"""Names of fonts with many letters, which are looked into first."""
EMPTY_BOXES = "Last Resort"  # a font that has a box for every letter
MOST_FONTS = 500


def give_letters(texts: Iterable[Text]) -> None:
    """Lets texts with letters that their font lacks take them from other installed fonts, in place; where
    there are none, a sentence says so, once."""
    unusual = [text for text in texts if not text.get_text().isascii()]
    missing = {
        letter
        for text in unusual
        for letter in text.get_text()
        if not letter.isspace() and ord(letter) not in _letters(_usual_font())
    }
    if not missing:
        return
    families, left = _fonts_with(frozenset(missing))
    for text in unusual:
        text.set_fontfamily([*text.get_fontfamily(), *families])
    if left:
        _tell("".join(sorted(left))[:20])


@lru_cache(maxsize=64)
def _fonts_with(wanted: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The families that have these letters, as few as are met first, and the letters that none has."""
    from matplotlib import font_manager

    upright = [font for font in font_manager.fontManager.ttflist if font.style == "normal"]
    upright.sort(key=lambda font: font.weight in (400, "normal", "regular"))  # the last of a name is drawn
    paths = {font.name: font.fname for font in upright if EMPTY_BOXES not in font.name}
    names = sorted(paths, key=lambda name: not WIDE.search(name))
    families, left = [], wanted
    for name in names[:MOST_FONTS]:
        if not left:
            break
        had = {letter for letter in left if ord(letter) in _letters(paths[name])}
        if had:
            families.append(name)
            left -= had
    return tuple(families), left


def _usual_font() -> str:
    from matplotlib import font_manager

    return str(font_manager.findfont(font_manager.FontProperties()))


@lru_cache(maxsize=MOST_FONTS)
def _letters(path: str) -> frozenset[int]:
    """What a font file can draw; nothing where it cannot be read."""
    from matplotlib import font_manager

    try:
        return frozenset(font_manager.get_font(path).get_charmap())
    except (OSError, RuntimeError, ValueError):
        return frozenset()


@lru_cache(maxsize=64)
def _tell(letters: str) -> None:
    log.warning(
        "No installed font has the letters %s, so figures show boxes in their place (pages show them); "
        "install one that has, such as Noto Sans CJK.",
        letters,
    )
