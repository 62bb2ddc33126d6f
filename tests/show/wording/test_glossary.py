from __future__ import annotations

import re

from protopfaith.explanation import Explanation
from protopfaith.show.report import render_report


def test_every_word_that_is_linked_is_explained_on_the_page(explanation: Explanation) -> None:
    page = render_report(explanation)
    linked = set(re.findall(r'href="#(word-[a-z]+)"', page))
    assert linked
    assert linked <= set(re.findall(r'id="(word-[a-z]+)"', page))
    for word in ("prototype", "player", "baseline", "psi"):
        assert f'id="word-{word}"' in page
