"""Hiding regions: the network's own answer, and the map's prediction of it."""

from __future__ import annotations

import torch

from protopfaith.explanation import Explainer
from protopfaith.explanation.decision import decide
from protopfaith.explanation.resumable_game import ResumableGame
from protopfaith.explanation.settings import Settings
from protopfaith.serve.whatif import hide
from protopfaith.shapley import Players


def test_it_is_the_answer_on_the_masked_image(explainer: Explainer, pixels: torch.Tensor) -> None:
    decision = decide(explainer.model, explainer.open(pixels))
    settings = Settings().on("cpu", (48, 48))
    resumable = ResumableGame(explainer.fused, decision, settings, Players.windows((48, 48), 16))
    result = resumable.play(512)
    found = hide(explainer.model, decision, resumable, result, [0, 4])
    masked = decision.picture.input.clone()
    masked[:, :16, :16] = 0
    masked[:, 16:32, 16:32] = 0
    with torch.no_grad():
        expected = explainer.model(masked[None])[0].double().softmax(0)
    assert torch.allclose(found.after, expected, atol=1e-4)
    assert torch.allclose(found.image, masked)
    assert torch.allclose(found.before, decision.logits.softmax(0), atol=1e-4)


def test_with_everything_hidden_map_and_network_agree(explainer: Explainer, pixels: torch.Tensor) -> None:
    """Values add up to the whole, so there the prediction is exact."""
    decision = decide(explainer.model, explainer.open(pixels))
    settings = Settings().on("cpu", (48, 48))
    resumable = ResumableGame(explainer.fused, decision, settings, Players.windows((48, 48), 16))
    result = resumable.play(256)
    found = hide(explainer.model, decision, resumable, result, range(9))
    assert found.predicted is not None
    assert found.predicted_score is not None
    assert torch.allclose(found.predicted, found.after, atol=1e-3)
    assert abs(found.predicted_score - found.score[1]) < 1e-3 * max(1, abs(found.score[1]))


def test_before_the_first_map_nothing_is_predicted(explainer: Explainer, pixels: torch.Tensor) -> None:
    decision = decide(explainer.model, explainer.open(pixels))
    settings = Settings().on("cpu", (48, 48))
    resumable = ResumableGame(explainer.fused, decision, settings, Players.windows((48, 48), 16))
    assert hide(explainer.model, decision, resumable, None, [0]).predicted is None
