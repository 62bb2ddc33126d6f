from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.subgroups import subgroups


@given(
    st.lists(st.dictionaries(st.sampled_from(["sex", "age", "site"]), st.sampled_from(["1", "50", "x", ""])))
)
def test_every_image_is_in_one_subgroup_of_each_column(about: list[dict[str, str]]) -> None:
    found, _ = subgroups(about)
    for members in found.values():
        assert sorted(index for places in members.values() for index in places) == list(range(len(about)))


def test_ages_are_binned_whatever_their_form() -> None:
    ages = ["3", "17", "18", "039Y", "40.5", "64", "65", "101", "", "old", "-3"]
    found, _ = subgroups([{"age": age} for age in ages])
    assert found["age"] == {
        "0 to 17": [0, 1],
        "18 to 39": [2, 3],
        "40 to 64": [4, 5],
        "65 and more": [6, 7],
        "not known": [8, 9, 10],
    }


def test_many_numbers_become_quarters() -> None:
    found, _ = subgroups([{"dose": str(value)} for value in range(40)], ["dose"])
    assert [len(places) for places in found["dose"].values()] == [10, 10, 10, 10]
    few, _ = subgroups([{"dose": str(value % 3)} for value in range(40)], ["dose"])
    assert list(few["dose"]) == ["0", "1", "2"]


@pytest.mark.parametrize(("start", "step"), [(2008, 1), (1e6, 0.001), (-40, 2.5), (1e20, 1e19), (0, 1e-9)])
def test_quarters_keep_their_ends_apart(start: float, step: float) -> None:
    values = [start + step * place for place in range(16)]
    found, _ = subgroups([{"year": str(value)} for value in values], ["year"])
    assert list(found["year"].values()) == [list(range(place, place + 4)) for place in (0, 4, 8, 12)]
    ends = [[float(end) for end in label.split(" to ")] for label in found["year"]]
    assert all(high < low for (_, high), (low, _) in pairwise(ends))


def test_years_are_written_as_years() -> None:
    found, _ = subgroups([{"year": str(year)} for year in range(2008, 2024)], ["year"])
    assert list(found["year"]) == ["2008 to 2011", "2012 to 2015", "2016 to 2019", "2020 to 2023"]


def test_columns_that_name_images_are_left_out_or_refused() -> None:
    about = [{"site": f"site {number}"} for number in range(40)]
    found, notes = subgroups(about)
    assert found == {}
    assert "site" in notes[0]
    with pytest.raises(ProtoPFaithError, match="too many"):
        subgroups(about, ["site"])


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(ProtoPFaithError, match="did you mean 'site'"):
        subgroups([{"site": "a"}], ["sites"])
    with pytest.raises(ProtoPFaithError, match="give a CSV file"):
        subgroups([{}], ["site"])


@pytest.mark.parametrize("age", ["-5", "1e400", "-1e9", "151", "99999"])
def test_numbers_that_are_no_age_are_told(age: str) -> None:
    found, notes = subgroups([{"age": "30"}, {"age": age}, {}])
    assert found["age"] == {"18 to 39": [0], "not known": [1, 2]}
    assert len(notes) == 1
    assert age in notes[0]


@pytest.mark.parametrize("age", ["", "unknown", "nan", "044Y", "0", "120"])
def test_ages_and_texts_are_no_cause_for_a_note(age: str) -> None:
    assert subgroups([{"age": "30"}, {"age": age}])[1] == []
