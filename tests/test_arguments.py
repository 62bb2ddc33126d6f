from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import protopfaith as pf
from protopfaith.arguments import finite_number, instance, named, seed_number, shown, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import load_explanation

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_a_value_in_a_message_is_short_and_on_one_line(value: object) -> None:
    assert len(shown(value)) <= 120
    assert "\n" not in shown(value)


@pytest.mark.parametrize("value", [3, np.int64(3), torch.tensor(3)])
def test_whole_numbers_of_any_library(value: object) -> None:
    assert whole_number(value, "It", least=1, most=5) == 3


@pytest.mark.parametrize("value", [True, 3.0, "3", None, float("nan"), [3]])
def test_what_is_no_whole_number(value: object) -> None:
    with pytest.raises(ProtoPFaithError, match="It must be a whole number"):
        whole_number(value, "It")


@pytest.mark.parametrize("value", [0, 6, 10**50, -(10**50)])
def test_bounds(value: int) -> None:
    with pytest.raises(ProtoPFaithError, match="It must be from 1 to 5"):
        whole_number(value, "It", least=1, most=5)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True, [1.0], 10**400])
def test_what_is_no_finite_number(value: object) -> None:
    with pytest.raises(ProtoPFaithError, match=r"It must be a (finite )?number"):
        finite_number(value, "It")


def test_seeds_are_what_every_library_takes() -> None:
    assert seed_number(2**32 - 1) == 2**32 - 1
    for value in (-1, 2**32, 1.5, "x"):
        with pytest.raises(ProtoPFaithError, match="The seed"):
            seed_number(value)


def test_names_are_printable_whatever_their_bytes_are() -> None:
    assert named("a\nb\x1b[31m.png") == "a\\nb\\x1b[31m.png"
    assert named("caf\udce9.png") == "caf\\udce9.png"
    assert named("日本 🐦.png") == "日本 🐦.png"


def test_instances() -> None:
    assert instance(3, (int, str), "It", "a number or a text") == 3
    with pytest.raises(ProtoPFaithError, match=r"It must be a text, not \[3\]"):
        instance([3], str, "It", "a text")


@pytest.mark.parametrize(
    "opened",
    [
        lambda: pf.Run(""),
        lambda: pf.explain("", "bird.png"),
        lambda: pf.Attribution.load(""),
        lambda: pf.explain_function("", torch.ones(3, 8, 8)),
        lambda: pf.explain_function(lambda x: x.sum((1, 2, 3)), ""),
        lambda: pf.convert("", "run"),
        lambda: load_explanation(""),
    ],
)
def test_an_empty_path_is_not_the_present_folder(opened):
    with pytest.raises(ProtoPFaithError, match="is an empty text; give a path"):
        opened()
