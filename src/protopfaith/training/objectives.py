"""What each stage minimizes, as modules whose `forward` gives the loss, so that Fabric can wrap them.

Each returns a dict with `loss`, its parts for the log, and `logits`.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn
from torch.nn import functional

from protopfaith.network import ProtoPNet
from protopfaith.training.losses import CostWeights, companion_cost, costs, l1_cost


def plain_logits(head: nn.Linear, encoded: Tensor) -> Tensor:
    """The plain classifier on what the encoder gives (B x channels x h x w)."""
    return head(encoded.mean(dim=(2, 3)))


class PlainObjective(nn.Module):
    """Pre-training: encoder, average pooling, linear head."""

    def __init__(self, encoder: nn.Module, head: nn.Linear, label_smoothing: float = 0.0):
        super().__init__()
        self.encoder, self.head, self.label_smoothing = encoder, head, label_smoothing

    def logits(self, images: Tensor) -> Tensor:
        return plain_logits(self.head, self.encoder(images))

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.logits(images)
        loss = functional.cross_entropy(logits, labels, label_smoothing=self.label_smoothing)
        return {"loss": loss, "cross_entropy": loss.detach(), "logits": logits.detach()}


class PrototypeObjective(nn.Module):
    """Warm-up and joint stages: cross-entropy + cluster - separation, and the companion's cost if there is
    one: a plain classifier's `head`."""

    def __init__(self, model: ProtoPNet, weights: CostWeights, head: nn.Linear | None = None):
        super().__init__()
        self.model, self.weights, self.head = model, weights, head

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        encoded = self.model.encoder(images)
        distances = self.model.encoded_distances(encoded)
        logits = self.model.logits(distances)
        result = _costs(self.model, logits, distances, labels, self.weights)
        if self.head is not None:
            plain = plain_logits(self.head, encoded).float()
            companion = companion_cost(logits, plain, labels, self.weights.label_smoothing)
            result["loss"] = result["loss"] + self.weights.companion * companion
        return {**result, "logits": logits.detach()}


class Exact:
    """A tensor that mixed precision leaves alone.

    Fabric rounds the floating-point inputs of a module to 16 bits; distances must not be.
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor


class ClassifierObjective(nn.Module):
    """The stage of F, on distances: V, Z and Q are fixed, and with them cluster and separation."""

    def __init__(self, model: ProtoPNet, weights: CostWeights):
        super().__init__()
        self.classifier = model.classifier
        self._model = [model]  # in a list: not a submodule, its parameters are not trained here
        # Neither depends on F; a pruned model has not the same number of prototypes for every class, which
        # `individual` needs.
        self.weights = replace(weights, diversity=0.0, individual=0.0)

    def forward(self, inputs: Exact, labels: Tensor) -> dict[str, Tensor]:
        model, distances = self._model[0], inputs.tensor.float()
        logits = model.logits(distances)
        result = _costs(model, logits, distances, labels, self.weights)
        loss = functional.cross_entropy(logits, labels, label_smoothing=self.weights.label_smoothing)
        if self.weights.l1:
            loss = loss + self.weights.l1 * l1_cost(model.classifier.weight, model.prototype_classes)
        return {**result, "loss": loss, "logits": logits.detach()}


def _costs(
    model: ProtoPNet, logits: Tensor, distances: Tensor, labels: Tensor, weights: CostWeights
) -> dict[str, Tensor]:
    return costs(
        logits,
        distances,
        labels,
        prototypes=model.prototypes,
        prototype_classes=model.prototype_classes,
        weights=weights,
    )
