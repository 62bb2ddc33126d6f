import pytest
import torch

from protopfaith.shapley.estimators.adaptive_owen.pairs import Layout
from protopfaith.shapley.estimators.adaptive_owen.phases import (
    KEPT,
    PHASES,
    of_others,
    of_streams,
    phase,
    spent,
)


@pytest.mark.parametrize("count", [0, 1, 255, 256, 600, 1024, KEPT - 1])
def test_the_next_sample_is_of_the_phase_that_it_lies_in(count: int) -> None:
    number, end = phase(count)
    assert PHASES[number] <= count < PHASES[number + 1] == end


@pytest.mark.parametrize("count", [8, 256, 700, KEPT])
def test_shares_of_the_phases_are_counted(count: int) -> None:
    drawn, complements = spent(count, Layout(0, 0))
    own = [sum(PHASES[i] <= one < PHASES[i + 1] for one in range(count)) for i in range(len(PHASES) - 1)]
    assert drawn == pytest.approx([one / count for one in own])
    assert not any(complements)


@pytest.mark.parametrize("start", [0, 3, 21])
def test_samples_take_turns_among_streams(start: int) -> None:
    rows = torch.arange(5)[:, None].expand(5, 12)
    assert of_streams(rows, start).tolist() == [(start + sample) % 5 for sample in range(12)]


def test_a_sample_is_of_all_other_streams_but_one() -> None:
    others = of_others(12, 5, torch.device("cpu"))
    assert [row.logical_not().nonzero().flatten().tolist() for row in others.T] == [
        [i % 5] for i in range(12)
    ]
