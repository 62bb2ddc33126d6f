"""Whatever a browser sends is a question that makes sense, or one sentence."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.question import COARSEST, FINEST, Question, precision_of, regions_of

SQUARE = [[0.1, 0.1], [0.5, 0.1], [0.5, 0.5]]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=8,
)
FIELDS = ("target", "versus", "players", "drawn", "baseline")


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.dictionaries(st.sampled_from([*FIELDS, "path"]), JSON, max_size=4))
def test_nothing_else_gets_through(said: dict[str, Any]) -> None:
    try:
        question = Question.of(said, classes=3)
    except ProtoPFaithError:
        return
    assert question.target in (None, 0, 1, 2)
    assert question.versus in (None, 0, 1, 2)
    assert question.baseline in ("zero", "blur", "mean")
    assert all(0 <= x <= 1 for polygon in question.drawn for corner in polygon for x in corner)


@pytest.mark.parametrize(
    "said",
    [
        {"players": "windows:1"},
        {"players": "windows:99999999999"},
        {"players": "windows:" + "9" * 5_000},
        {"players": "../../etc/passwd"},
        {"players": "drawn"},
        {"drawn": [SQUARE] * 40},
        {"drawn": [[[0, math.nan]] * 3]},
        {"baseline": "image"},
        {"target": True},
        {"target": 3},
        {"target": 1, "versus": 1},
        {"path": "x"},
    ],
)
def test_what_makes_no_sense_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ProtoPFaithError):
        Question.of(said, classes=3)


def test_what_is_not_named_stays() -> None:
    before = Question.of({"target": 1, "players": "superpixels:60"}, classes=3)
    after = Question.of({"baseline": "blur"}, classes=3, before=before)
    assert (after.target, after.players, after.baseline) == (1, "superpixels:60", "blur")
    assert Question.of({"drawn": [SQUARE]}, 3, after).players == "drawn"


def test_precisions_are_within_reason() -> None:
    assert precision_of(1e-9) == FINEST
    assert precision_of(7) == COARSEST
    for bad in ("x", None, math.nan, [1], 10**400):
        with pytest.raises(ProtoPFaithError):
            precision_of(bad)


def test_regions_are_numbers_of_players() -> None:
    assert regions_of([3, 1, 1], 4) == (1, 3)
    for bad in ([4], [-1], [1.5], "1", None, list(range(9))):
        with pytest.raises(ProtoPFaithError):
            regions_of(bad, 4)
