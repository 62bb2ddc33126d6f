"""The plain classifier: V with a linear head on its averaged features.

Prototypes are compared with it, and V starts from it. It starts from a linear probe itself, and moves away
from that only as far as validation images say that it helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protopfaith.network import PatchNetwork
from protopfaith.training.checkpoint import pack_module, unpack_module
from protopfaith.training.images import TrainingImages
from protopfaith.training.probe import SHARES, START, LinearProbe, blend, measure_batch_norm, temper
from protopfaith.training.validation import plain_outputs

State = dict[str, Tensor]


@dataclass(frozen=True)
class Moved:
    """How far a plain classifier was moved.

    Args:
        share: of the way from the probe to what training made of it
        accuracies: validation balanced accuracy at each share that was tried; none without validation images

    >>> Moved(0.4, {0.0: 0.5, 0.4: 0.75, 1.0: 0.625}).sentences()[0][:36]
    'Linear probe 0.500, fine-tuned 0.625'
    """

    share: float
    accuracies: dict[float, float]

    def sentences(self) -> list[str]:
        """What people are told; nothing where nothing was measured."""
        if not self.accuracies:
            return []
        probe, trained, kept = (self.accuracies[share] for share in (0.0, 1.0, self.share))
        return [
            f"Linear probe {probe:.3f}, fine-tuned {trained:.3f}; kept at {self.share:g} of the way between "
            f"them: {kept:.3f} (validation balanced accuracy)."
        ]


@dataclass(frozen=True)
class PlainClassifier:
    """V and a head, which are changed in place.

    Args:
        model: has V
        head: a linear layer on its averaged features
        images: to measure batch norm on, and to validate on
    """

    model: PatchNetwork
    head: nn.Linear
    images: TrainingImages

    def state(self) -> State:
        """A copy of all that it is made of."""
        state = {**pack_module("encoder", self.model.encoder), **pack_module("head", self.head)}
        return {name: tensor.clone() for name, tensor in state.items()}

    @torch.no_grad()
    def start_from(self, probe: LinearProbe) -> State:
        """Makes the head a smaller copy of a probe; returns the state with the probe itself."""
        self.head.weight.copy_(probe.weight)
        self.head.bias.copy_(probe.bias)
        state = self.state()
        self.head.weight.mul_(START)
        self.head.bias.mul_(START)
        return state

    def move_as_far_as_it_helps(self, start: State, validate: Callable[[], float | None]) -> Moved:
        """Becomes, of the networks between `start` and what it is now, the best on validation images; of
        equally good ones the furthest."""
        end, accuracies = self.state(), {}
        for share in SHARES:
            self._become(start, end, share)
            accuracy = validate()
            if accuracy is not None:
                accuracies[share] = accuracy
        share = max(accuracies, key=lambda share: (accuracies[share], share)) if accuracies else 1.0
        self._become(start, end, share)
        if share < 1:
            temper(
                self.head, plain_outputs(self.model, self.head, self.images), self.images.validation.labels
            )
        return Moved(share, accuracies)

    def _become(self, start: State, end: State, share: float) -> None:
        state = blend(start, end, share)
        unpack_module("encoder", self.model.encoder, state)
        unpack_module("head", self.head, state)
        if 0 < share < 1:
            measure_batch_norm(self.model, self.images)
