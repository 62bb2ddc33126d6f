"""A game in several parts: it goes on from where it was, and ends where one long game would."""

from __future__ import annotations

import torch

from protopfaith.explanation import Explainer
from protopfaith.explanation.decision import decide
from protopfaith.explanation.resumable_game import ResumableGame
from protopfaith.explanation.settings import Settings
from protopfaith.shapley import Players


def resumable_on(explainer: Explainer, pixels: torch.Tensor, side: int = 12) -> ResumableGame:
    assert explainer.reference is not None
    temperature = explainer.reference.temperature
    decision = decide(explainer.model, explainer.open(pixels), temperature=temperature)
    settings = Settings().on("cpu", (48, 48))
    return ResumableGame(explainer.fused, decision, settings, Players.windows((48, 48), side))


def test_evaluations_add_up_and_errors_shrink(explainer: Explainer, pixels: torch.Tensor) -> None:
    resumable = resumable_on(explainer, pixels)
    assert resumable.result is None
    errors = [resumable.play(256).precision for _ in range(4)]
    assert resumable.evaluations == 1024
    assert errors[-1] < errors[0]


def test_it_agrees_with_a_game_in_one_go(explainer: Explainer, pixels: torch.Tensor) -> None:
    resumable = resumable_on(explainer, pixels)
    for _ in range(4):
        found = resumable.play(512)
    explanation = explainer.explain(pixels, players=12, budget=4096, sources=False)
    mine, theirs = found.values[resumable.driving[-1]], explanation.class_map.values
    assert float((mine - theirs).norm() / theirs.norm()) < 0.3
    assert float((mine.sum() - theirs.sum()).abs()) < 1e-3 * float(theirs.sum().abs())


def test_it_stops_at_the_precision(explainer: Explainer, pixels: torch.Tensor) -> None:
    resumable = resumable_on(explainer, pixels)
    found = resumable.play(100_000, precision=0.2)
    assert found.reached
    assert found.evaluations < 100_000
    assert found.state is None  # what is given away is no larger than an explanation's


def test_few_regions_are_exact_at_once(explainer: Explainer, pixels: torch.Tensor) -> None:
    resumable = resumable_on(explainer, pixels, 24)
    found = resumable.play(2**4)
    assert found.precision == 0
    assert resumable.play(100).evaluations == found.evaluations
