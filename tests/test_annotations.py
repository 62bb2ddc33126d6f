from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from protopfaith.annotations import check_arguments, check_fields, described, fits
from protopfaith.errors import ProtoPFaithError

if TYPE_CHECKING:
    from fractions import Fraction


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (3, int),
        (np.int64(3), int),
        (torch.tensor(3), int),
        (3, float),
        (np.float32(0.5), float),
        (torch.tensor(0.5), float),
        (math.inf, float),
        (np.bool_(True), bool),
        (Path("x"), Path | str),
        ("x", Path | str),
        (None, int | None),
        ([1, 2], tuple[int, int]),
        ((1, 2, 3), tuple[int, ...]),
        (range(3), Sequence[int]),
        (np.array([1, 2]), Sequence[int]),
        (torch.tensor([1, 2]), Sequence[int]),
        (pd.Series(["a", "b"], index=[7, 9]), Sequence[str]),
        ((one for one in "ab"), Iterable[str]),
        ({"a": 1}, Mapping[str, int]),
        (len, Callable[[Any], int]),
        ("b", Literal["a", "b"]),
        (torch.zeros(2), Tensor),
        (object(), Any),
    ],
)
def test_what_fits(value, hint):
    assert fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (1.0, int),
        ("1", int),
        (None, int),
        (math.nan, float),
        ("1", float),
        (1j, float),
        (torch.zeros(2), float),
        (1, bool),
        (None, Path | str),
        (b"x", Path | str),
        ("ab", Sequence[str]),
        ([1, None], Sequence[int]),
        ([1], tuple[int, int]),
        ([1, "x"], tuple[int, int]),
        (3, tuple[int, ...]),
        ({}, tuple[int, ...]),
        ({1: 1}, Mapping[str, int]),
        ([], Mapping[str, int]),
        ("len", Callable[[Any], int]),
        ("c", Literal["a", "b"]),
        ([], Literal["a", "b"]),
        (np.zeros(2), Tensor),
        (torch.tensor(3), Sequence[int]),
        (pd.DataFrame({"a": ["x"]}), Sequence[str]),
        (pd.Series(["a", None]), Sequence[str]),
    ],
)
def test_what_does_not_fit(value, hint):
    assert not fits(value, hint)


def test_a_wrong_argument_is_named_with_what_is_expected():
    def played(times: int, names: Sequence[str] = (), *others: int, loud: bool = False, **rest: str) -> None:
        check_arguments(played, locals())

    played(3, ["a"], 1, 2, loud=True, anything="x")
    with pytest.raises(ProtoPFaithError, match=r"'times' of .*played must be a whole number, not 'x'"):
        played("x")
    with pytest.raises(ProtoPFaithError, match=r"'names' of .* must be a list of text, not 'abc'"):
        played(3, "abc")
    with pytest.raises(ProtoPFaithError, match=r"'loud' of .* must be True or False, not 1"):
        played(3, loud=1)


def test_annotations_that_only_type_checkers_know_fit_everything():
    def halved(number: Fraction, times: int) -> None:
        check_arguments(halved, locals())

    halved("anything", 1)
    with pytest.raises(ProtoPFaithError, match="times"):
        halved("anything", None)


@dataclass(frozen=True)
class Point:
    x: float = field(default=0.0, metadata={"at_least": 0, "at_most": 1})
    name: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": "a"}, "'x' of Point must be a number, not 'a'"),
        ({"x": 2}, "'x' of Point must be at most 1, not 2"),
        ({"name": 3}, "'name' of Point must be text or None, not 3"),
    ],
)
def test_fields_have_types_and_bounds(arguments, message):
    Point(x=1, name="a")
    with pytest.raises(ProtoPFaithError, match=message):
        Point(**arguments)


def test_every_hint_has_words():
    assert described(tuple[int, float]) == "2 values (a whole number, a number)"
    assert described(Tensor | None) == "a Tensor or None"
    assert described(Callable[..., int]) == "a function"
    assert described(Mapping[str, int]) == "a mapping"
