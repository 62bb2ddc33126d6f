from __future__ import annotations

from protopfaith.show.wording.sharpness import sides, strength


def test_words_hold_at_both_ends() -> None:
    assert "not clear yet" in sides(0, 9)
    assert sides(9, 9).startswith("9 of 9 regions")
    assert "one region" in sides(1, 1)
    assert "raise or lower it" in sides(3, 9, "raise or lower it")
    assert [strength(error) for error in (0.0, 0.004, 0.5, 0.7, 2.0, float("inf"))] == [
        "known exactly",
        "known to about ±0.40%",
        "known to about ±50%",
        "hardly known yet (±70%)",
        "not known yet",
        "not known yet",
    ]
