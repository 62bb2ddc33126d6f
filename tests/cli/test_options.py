from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.cli.options import check_options, parse_indices, parse_limits, parse_options
from protopfaith.errors import ProtoPFaithError


@given(st.lists(st.integers(-(10**9), 10**9), min_size=1))
def test_numbers_are_read_as_they_are_written(numbers: list[int]) -> None:
    assert parse_indices(",".join(map(str, numbers)), "Prototypes") == numbers


@pytest.mark.parametrize("text", ["", "one", "1,,2", "1.5", "1,2,", "10000000000"])
def test_what_is_no_list_of_numbers_is_one_sentence(text: str) -> None:
    with pytest.raises(ProtoPFaithError, match=r"^Prototypes are numbers with commas between, not .*\.$"):
        parse_indices(text, "Prototypes")


@given(st.dictionaries(st.sampled_from(["dasp", "owen", "truth"]), st.integers(0, 10**9 - 1)))
def test_limits_are_names_and_numbers(limits: dict[str, int]) -> None:
    assert parse_limits([f"{name}={number}" for name, number in limits.items()]) == limits


@pytest.mark.parametrize("text", ["dasp", "=3", "dasp=", "dasp=-1", "dasp=2.5", "dasp=1234567890"])
def test_a_wrong_limit_is_shown(text: str) -> None:
    with pytest.raises(ProtoPFaithError, match=f"such as dasp=20, not '{text}'"):
        parse_limits([text])


def test_options_have_the_types_of_the_estimator() -> None:
    assert parse_options("dasp", ["sizes=8", "batch_size=4"]) == {"sizes": 8, "batch_size": 4}
    assert parse_options("default", ["shrinkage=false"]) == {"shrinkage": False}
    for text in ("sizes", "=8"):
        with pytest.raises(ProtoPFaithError, match="An option is a name and a value"):
            check_options([text])
    with pytest.raises(ProtoPFaithError, match="few"):
        parse_options("dasp", ["sizes=few"])
