"""What if regions were not there? The network's answer, and what the map had predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.explanation.decision import Decision
from protopfaith.explanation.resumable_game import ResumableGame
from protopfaith.network import PrototypeNetwork, probabilities
from protopfaith.shapley import Attribution


@dataclass(frozen=True, eq=False)
class WhatIf:
    """Probabilities of all classes or findings with and without some regions, and as the map predicts them
    without.

    Args:
        hidden: the players that are not shown
        before: (C,)
        after: (C,)
        predicted: (C,); None before the first map
        score: of what is explained: before, after
        predicted_score: what the map predicts for after
        predicted_error: standard error of that
        image: C x H x W, as the network saw it
    """

    hidden: tuple[int, ...]
    before: Tensor
    after: Tensor
    predicted: Tensor | None
    score: tuple[float, float]
    predicted_score: float | None
    predicted_error: float | None
    image: Tensor

    @property
    def prediction(self) -> int:
        """The class that the network chooses now."""
        return int(self.after.argmax())


@torch.no_grad()
def hide(
    model: PrototypeNetwork,
    decision: Decision,
    resumable: ResumableGame,
    result: Attribution | None,
    hidden: Sequence[int],
) -> WhatIf:
    """Asks the network about the image without some regions.

    Args:
        model: the network.
        decision: what it said about the whole image.
        resumable: the game, whose players these regions are.
        result: the map so far.
        hidden: numbers of the regions.
    """
    game = resumable.game
    shown = torch.ones(1, len(resumable.players), dtype=torch.bool, device=game.device)
    shown[0, list(hidden)] = False
    image = game.masked(shown)
    outputs = resumable.function(image)[0].double().cpu()
    count, explained = len(model.prototypes), resumable.driving[-1]
    after = _probabilities(model, decision, outputs[:count])
    before = float(game.grand[explained])
    predicted = score = error = None
    if result is not None:
        gone = list(hidden)
        distances = decision.distances - result.values[:count, gone].sum(1)
        predicted = _probabilities(model, decision, distances.clamp_min(0))
        score = before - float(result.values[explained, gone].sum())
        error = float(result.standard_errors[explained, gone].square().sum().sqrt())
    return WhatIf(
        tuple(hidden),
        decision.probabilities,
        after,
        predicted,
        (before, float(outputs[explained])),
        score,
        error,
        image[0],
    )


def _probabilities(model: PrototypeNetwork, decision: Decision, distances: Tensor) -> Tensor:
    """What distances (P,) lead to, calibrated as the decision was: (C,)."""
    logits = model.logits(distances[None].to(model.prototypes))[0].double().cpu()
    return probabilities(decision.calibrator(logits), decision.outcome)
