"""A case: slices that take about as long as they should, stop and go, and an explanation at any time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch

from protopfaith.explanation import Explainer
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.networks import Network
from protopfaith.serve.question import Question


@pytest.fixture
def case(explainer: Explainer, pixels: torch.Tensor) -> Case:
    network = Network(0, explainer, "birds")
    made = Case(network, explainer.open(pixels), Question(players="windows:5"), "me", bounds=Bounds())
    made.decide()
    return made


def test_a_coarse_map_comes_first_and_gives_way(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.play()
    assert case.is_coarse
    coarse = case.resumable
    assert coarse is not None
    assert len(coarse.players) < 100
    monkeypatch.setattr("protopfaith.serve.case.CLEAR", 100.0)
    case.play()
    assert not case.is_coarse
    assert case.resumable is not coarse
    assert case.result is not None
    assert len(case.result.players) == 100


def test_it_plays_only_while_somebody_looks(case: Case) -> None:
    assert not case.wants_to_play

    async def look() -> None:
        bell = case.live.join()
        assert case.wants_to_play
        case.stop()
        assert not case.wants_to_play
        case.go_on(0.1)
        assert case.wants_to_play
        case.live.leave(bell)

    asyncio.run(look())
    assert not case.wants_to_play


def test_a_slice_that_is_stopped_is_shown_before_it_is_said(case: Case) -> None:
    said: list[tuple[str, int]] = []
    case.on_answer = lambda one: said.append(("answer", one.evaluations))
    case.on_state = lambda one: said.append((one.stage, one.evaluations))
    resumable = case.resumable
    assert resumable is not None
    play = resumable.play

    def stopped_meanwhile(*arguments: Any) -> Any:
        case.stop()
        return play(*arguments)

    resumable.play = stopped_meanwhile  # type: ignore[method-assign]
    case.play()
    made = case.evaluations
    assert said == [("stopping", 0), ("answer", made), ("stopped", made)]
    case.play()  # a turn that was given before it was stopped
    assert case.evaluations == made


def test_an_explanation_can_be_had_at_any_time(case: Case) -> None:
    case.play()
    first = case.explanation()
    assert first.coarse
    assert float(first.class_map.values.sum()) == pytest.approx(first.class_map.total, rel=1e-3)
    case.fail("It broke.")
    assert case.stage == "failed"
    case.go_on(0.1)
    assert case.stage == "failed"


def test_a_slice_ends_near_the_precision_that_was_asked_for(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protopfaith.serve.pace.Pace.step", lambda *_, **__: 2_048)
    monkeypatch.setattr("protopfaith.serve.case.COARSE_EVALUATIONS", 1)
    case.precision = 1e-6
    case.play()
    case.play()
    first = case.result
    assert first is not None
    assert first.evaluations == 2_048
    case.go_on(0.97 * first.precision)
    case.play()
    second = case.result
    assert second is not None
    assert 2_048 < second.evaluations < 2_048 * 1.2


def test_a_map_that_is_held_keeps_its_regions(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.play()
    held = case.shown
    assert held is not None
    case.without(held, (3,))
    assert case.hidden == (3,)
    monkeypatch.setattr("protopfaith.serve.case.CLEAR", 100.0)
    case.play()
    assert case.hidden == ()  # the finer map has other regions
    found = case.without(held, (3,))
    assert case.hidden == ()
    assert held.result is not None
    assert found.predicted_score == pytest.approx(
        found.score[0] - float(held.result.values[held.resumable.driving[-1], 3])
    )


def test_what_cannot_be_drawn_is_a_failure_of_this_case(case: Case) -> None:
    said = []

    def broken(one: Case) -> None:
        raise ValueError("a template")

    case.on_answer, case.on_state = broken, lambda one: said.append(one.stage)
    with pytest.raises(ValueError, match="template"):
        case.play()
    case.fail("It cannot be drawn.")
    assert said == ["failed"]
