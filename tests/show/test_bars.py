from __future__ import annotations

import pytest

from protopfaith.show.bars import Sum, Term, make_bar, share_bars, sum_bars


def test_bars_start_at_zero_and_go_to_their_side() -> None:
    more, less = (make_bar(Term("", value), 4.0, "") for value in (2.0, -2.0))
    assert (more.left, more.width) == (50, 25)
    assert (less.left, less.width) == (25, 25)
    assert share_bars("", [("", 1.0, "")]).rows[0].width == 100


def test_terms_share_one_scale_and_the_sum_stands_below() -> None:
    first, second = sum_bars(
        Sum("all", [Term("a", 3.0), Term("b", -1.0)], Term("sum", 2.0)), Sum("more", [], Term("sum", 1.5))
    )
    widths = [row.width for row in (*first.rows, *second.rows)]
    assert widths[0] / widths[1] == pytest.approx(3, abs=0.01)
    assert widths[0] / widths[3] == pytest.approx(2, abs=0.01)
    assert [row.total for row in first.rows] == [False, False, True]
    assert len({row.zero for row in (*first.rows, *second.rows)}) == 1
    assert all(row.left >= 0 and row.left + row.width <= 100.01 for row in first.rows)


def test_no_room_is_left_for_a_sign_that_does_not_occur() -> None:
    assert sum_bars(Sum("all", [Term("a", 3.0)], Term("sum", 3.0)))[0].rows[0].width > 95


def test_terms_that_all_images_share_have_no_color() -> None:
    table = sum_bars(Sum("all", [Term("average", 3.0, neutral=True)], Term("sum", 3.0)))[0]
    assert [row.kind for row in table.rows] == ["neutral", "plus"]


@pytest.mark.parametrize(
    ("size", "words"), [(1.6e-4, ["+0.000162", "-2.4e-06"]), (1.25e6, ["+1.27e+06", "-1.88e+04"])]
)
def test_very_small_and_large_terms_keep_their_digits(size: float, words: list[str]) -> None:
    terms = [Term("a", 1.015 * size), Term("b", -0.015 * size)]
    (bars,) = sum_bars(Sum("it", terms, Term("sum", size)))
    assert [row.text for row in bars.rows[:2]] == words
