"""Slices: few and large where a network is quick, neither too long nor too small where it is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from protopfaith.serve.pace import FIRST, GOALS, LEAST, LONGEST, SLICE, SMALLEST, Pace, next_goal


def paced(evaluations: int, evaluating: float, in_all: float | None = None) -> Pace:
    pace = Pace()
    pace.saw(evaluations, evaluating, evaluating if in_all is None else in_all)
    return pace


@given(
    st.integers(SMALLEST, 10**5),
    st.floats(1e-4, 100),
    st.floats(0, 100),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_slices_neither_explode_nor_vanish(
    step: int, seconds: float, fixed: float, made: int, alone: bool
) -> None:
    pace = paced(step, seconds, seconds + fixed)
    following = pace.step(made, alone=alone)
    assert following >= SMALLEST or made + following == next_goal(made)
    assert following <= SMALLEST or following * seconds / step <= LONGEST + 1e-6
    assert LEAST <= pace.first() <= FIRST


def test_a_quick_network_goes_from_goal_to_goal_where_nobody_waits() -> None:
    made, goals, pace = 0, [], paced(2_048, 0.1)
    for _ in range(3):
        made += pace.step(made, alone=True)
        goals.append(made)
    assert goals == [*GOALS, 2 * GOALS[-1]]
    assert pace.step(GOALS[0]) * 0.1 / 2_048 <= SLICE


def test_what_every_slice_costs_is_paid_less_often() -> None:
    each = 1 / 300  # so that slices would have 64 evaluations and last as long as their fits
    assert paced(300, 1.0, 1.1).step(500) == 64
    assert paced(300, 1.0, 2.0).step(500) == 256
    assert paced(300, 1.0, 60.0).step(500) * each <= LONGEST


def test_the_largest_of_the_last_slices_tells_most() -> None:
    pace = paced(2_048, 0.2)
    pace.saw(128, 0.1, 0.1)  # most of it is what any slice costs
    assert pace.step(0) == GOALS[0]
    for _ in range(8):
        pace.saw(128, 12.8, 12.8)  # something else has the machine now
    assert pace.step(0) == SMALLEST
