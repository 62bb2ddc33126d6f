from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.typed import from_dict, to_dict


@dataclass(frozen=True)
class Inner:
    share: float = field(default=0.5, metadata={"above": 0, "at_most": 1})
    mode: Literal["fast", "slow"] = "fast"


@dataclass(frozen=True)
class Outer:
    count: int = field(default=1, metadata={"at_least": 1})
    name: str | None = None
    fold: int | str | None = None
    flag: bool = False
    size: tuple[int, int] | None = field(default=None, metadata={"at_least": 1})
    options: dict[str, Any] = field(default_factory=dict)
    inner: Inner = Inner()


def test_values_arrive_in_nested_dataclasses():
    assert from_dict(Outer, {"inner": {"share": 1, "mode": "slow"}, "size": [2, 3]}) == Outer(
        size=(2, 3), inner=Inner(1.0, "slow")
    )


@given(
    st.builds(
        Outer,
        count=st.integers(min_value=1),
        name=st.none() | st.text(),
        fold=st.none() | st.integers() | st.text(),
        flag=st.booleans(),
        size=st.none() | st.tuples(st.integers(1), st.integers(1)),
        options=st.dictionaries(st.text(), st.integers()),
        inner=st.builds(Inner, share=st.floats(min_value=1e-9, max_value=1)),
    )
)
def test_round_trip(value):
    assert from_dict(Outer, to_dict(value)) == value


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"cuont": 1}, ["'cuont'", "did you mean 'count'"]),
        ({"inner": {"shore": 1}}, ["'inner.shore'", "did you mean 'share'"]),
        ({"count": "many"}, ["'count'", "whole number", "'many'"]),
        ({"count": 1.5}, ["'count'", "whole number"]),
        ({"count": True}, ["'count'", "whole number"]),
        ({"count": 0}, ["'count'", "at least 1"]),
        ({"flag": 1}, ["'flag'", "true or false"]),
        ({"name": 3}, ["'name'", "text or null"]),
        ({"size": [1]}, ["'size'", "list of 2"]),
        ({"size": [1, "a"]}, ["'size'"]),
        ({"size": 64}, ["'size'", "not 64; write [64, 64]"]),
        ({"size": [3, 0]}, ["'size'", "at least 1", "(3, 0)"]),
        ({"inner": {"share": 0}}, ["'inner.share'", "more than 0"]),
        ({"inner": {"share": 2}}, ["'inner.share'", "at most 1"]),
        ({"inner": {"share": "x"}}, ["'inner.share'", "a finite number"]),
        ({"inner": {"mode": "fsat"}}, ["'inner.mode'", "did you mean 'fast'"]),
        ({"inner": 3}, ["'inner'", "keys and values"]),
        ({"options": 3}, ["'options'", "a mapping"]),
        ([], ["top level"]),
    ],
)
def test_errors_name_the_key(values, words):
    with pytest.raises(ProtoPFaithError) as caught:
        from_dict(Outer, values)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_exponents_without_a_point_are_numbers():
    assert from_dict(Inner, {"share": "1e-3"}).share == 0.001
