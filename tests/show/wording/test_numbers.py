from __future__ import annotations

import pytest

from protopfaith.show.wording.numbers import asked, percent, with_error


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


@pytest.mark.parametrize("value", [-12.3456, 0.0, 1e-7, 4e5])
def test_an_error_is_told_where_it_is_known(value: float) -> None:
    said, error = with_error(value, abs(value) / 3 + 1e-9).split(" ± ")
    assert said == with_error(value, float("nan"))
    assert said[0] in "+-"
    assert float(said) == pytest.approx(value, rel=5e-3)
    assert float(error) == pytest.approx(abs(value) / 3 + 1e-9, rel=5e-2)


@pytest.mark.parametrize("precision", [1.0, 0.1, 0.05, 0.0123, 1e-4, 1e-6, 1e-9])
def test_a_precision_is_told_as_it_was_asked_for(precision: float) -> None:
    assert float(asked(precision).strip("±%")) == pytest.approx(100 * precision)
