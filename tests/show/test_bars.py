from __future__ import annotations

import pytest

from protopfaith.show.bars import make_bar, sum_bars


def test_bars_start_at_zero_and_go_to_their_side() -> None:
    more, less = (make_bar("", value, 4.0, "") for value in (2.0, -2.0))
    assert (more.left, more.width) == (50, 25)
    assert (less.left, less.width) == (25, 25)
    assert make_bar("", 1.0, 1.0, "", zero=0.0).width == 100


def test_the_longest_term_fills_its_side() -> None:
    table = sum_bars("all", [("a", 3.0, ""), ("b", -1.0, "")], 2.0)
    assert [row.width for row in table.rows] == pytest.approx([50, 16.67, 33.33])
    assert [row.total for row in table.rows] == [False, False, True]
