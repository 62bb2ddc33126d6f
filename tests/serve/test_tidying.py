"""Tidying up is idle work that ends."""

from __future__ import annotations

from protopfaith.serve.tidying import give_back


def test_there_is_nothing_left_to_do_afterwards() -> None:
    assert give_back() is False
