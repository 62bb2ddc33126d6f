from __future__ import annotations

import pytest

from protopfaith.show.wording.numbers import percent


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (5e-5, "less than 0.01%"),
        (0.0014, "0.14%"),
        (0.034, "3.4%"),
        (0.5, "50%"),
        (0.9864, "99%"),
        (0.9986, "99.9%"),  # not 100% beside the other class's 0.14%
        (0.99999, "more than 99.9%"),
        (1.0, "100%"),
        (3.343, "334%"),
        (float("nan"), "an unknown share"),
    ],
)
def test_shares_are_rounded_without_claiming_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == text
