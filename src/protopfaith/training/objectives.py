"""What each stage minimizes, as modules whose `forward` gives the loss, so that Fabric can wrap them.

Each returns a dict with `loss`, its parts for the log, and `logits`. Images beyond the labels are copies of
the first ones with hidden regions: they have one cost of their own, and all others are of whole images.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from protopfaith.network import ProtoPNet, minimum_over_positions
from protopfaith.training.batch_norm import held_batch_norm
from protopfaith.training.losses import (
    CostWeights,
    class_pairs,
    companion_cost,
    costs,
    hidden_cost,
    l1_cost,
)
from protopfaith.training.places import placed_cost

if TYPE_CHECKING:
    from protopfaith.training.recipe import Recipe


def plain_logits(head: nn.Linear, encoded: Tensor) -> Tensor:
    """The plain classifier on what the encoder gives (B x channels x h x w)."""
    return head(encoded.mean(dim=(2, 3)))


class PlainObjective(nn.Module):
    """Pre-training: encoder, average pooling, linear head."""

    class_weights: Tensor | None

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Linear,
        label_smoothing: float = 0.0,
        class_weights: Tensor | None = None,
        hidden: float = 0.0,
    ):
        super().__init__()
        self.encoder, self.head, self.label_smoothing = encoder, head, label_smoothing
        self.hidden = hidden
        self.register_buffer("class_weights", class_weights, persistent=False)

    def logits(self, images: Tensor) -> Tensor:
        return plain_logits(self.head, self.encoder(images))

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        whole, copies = images.tensor_split([len(labels)])
        logits = self.logits(whole)
        cross_entropy = functional.cross_entropy(
            logits, labels, self.class_weights, label_smoothing=self.label_smoothing
        )
        loss = cross_entropy
        if len(copies) and self.hidden:
            with held_batch_norm(self.encoder):
                hidden = self.logits(copies)
            loss = loss + self.hidden * hidden_cost(hidden, logits, labels, self.class_weights)
        return {"loss": loss, "cross_entropy": cross_entropy.detach(), "logits": logits.detach()}


class PrototypeObjective(nn.Module):
    """Warm-up and joint stages: cross-entropy + cluster - separation, and the companion's cost if there is
    one: a plain classifier's `head`. All logits are multiplied by exp(`log_scale`) where there is one."""

    class_weights: Tensor | None

    def __init__(
        self,
        model: ProtoPNet,
        weights: CostWeights,
        head: nn.Linear | None = None,
        class_weights: Tensor | None = None,
        log_scale: nn.Parameter | None = None,
    ):
        super().__init__()
        self.model, self.weights, self.head, self.log_scale = model, weights, head, log_scale
        self.register_buffer("class_weights", class_weights, persistent=False)
        # Once, not in every step.
        self.register_buffer("pairs", class_pairs(model.prototype_classes), persistent=False)

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        whole_images, copies = images.tensor_split([len(labels)])
        encoded = self.model.encoder(whole_images)
        maps = self.model.encoded_maps(encoded)
        distances = minimum_over_positions(maps)
        scale = 1.0 if self.log_scale is None else self.log_scale.exp()
        logits = scale * self.model.logits(distances)
        # F may hold what earlier stages learned of the scale: prototypes are asked alone at the same one.
        whole = scale if self.log_scale is None else scale * own_weight(self.model)
        result = _costs(
            self.model,
            logits,
            distances,
            labels,
            self.weights,
            class_weights=self.class_weights,
            scale=whole,
            pairs=self.pairs,
        )
        if self.weights.places:
            result["loss"] = result["loss"] + self.weights.places * self._placed(maps, encoded, labels)
        plain = None
        if self.head is not None:
            plain = plain_logits(self.head, encoded).float()
            companion = companion_cost(
                logits, plain, labels, self.weights.label_smoothing, self.class_weights
            )
            result["loss"] = result["loss"] + self.weights.companion * companion
        if len(copies) and self.weights.hidden:
            hidden = self._hidden(copies, scale, logits, plain, labels)
            result["loss"] = result["loss"] + self.weights.hidden * hidden
        return {**result, "logits": logits.detach()}

    def _hidden(
        self, copies: Tensor, scale: Tensor | float, logits: Tensor, plain: Tensor | None, labels: Tensor
    ) -> Tensor:
        """What copies cost the prototypes and, of the weight that it has on whole images, the companion."""
        with held_batch_norm(self.model.encoder):
            encoded = self.model.encoder(copies)
        distances = minimum_over_positions(self.model.encoded_maps(encoded))
        cost = hidden_cost(scale * self.model.logits(distances), logits, labels, self.class_weights)
        if self.head is not None and plain is not None:
            own = plain_logits(self.head, encoded).float()
            cost = cost + self.weights.companion * hidden_cost(own, plain, labels, self.class_weights)
        return cost

    def _placed(self, maps: Tensor, encoded: Tensor, labels: Tensor) -> Tensor:
        """Prototypes at places of their own, where the companion finds evidence for the class."""
        evidence = None
        if self.head is not None:
            weight = self.head.weight.detach()[labels].to(encoded.dtype)
            evidence = torch.einsum("bchw,bc->bhw", encoded.detach(), weight)
        classes = len(self.model.class_names)
        return placed_cost(maps, labels, self.model.prototype_classes, classes, evidence)


def own_weight(model: ProtoPNet) -> Tensor:
    """The mean of F's weights from prototypes to their own classes: 1 before anything is learned."""
    places = torch.arange(len(model.prototype_classes), device=model.prototype_classes.device)
    return model.classifier.weight.detach()[model.prototype_classes, places].mean()


class Exact:
    """A tensor whose number format stays, also where others are mixed.

    Fabric rounds the floating-point inputs of a module to 16 bits; distances must not be.
    """

    def __init__(self, tensor: Tensor):
        self.tensor = tensor


class ClassifierObjective(nn.Module):
    """The stage of F, on distances: V, Z and Q are fixed, and with them cluster and separation."""

    class_weights: Tensor | None

    def __init__(self, model: ProtoPNet, weights: CostWeights, class_weights: Tensor | None = None):
        super().__init__()
        self.classifier = model.classifier
        self.register_buffer("class_weights", class_weights, persistent=False)
        self._model = [model]  # in a list: not a submodule, its parameters are not trained here
        # Neither depends on F; a pruned model has not the same number of prototypes for every class, which
        # `individual` needs.
        self.weights = replace(weights, diversity=0.0, individual=0.0, places=0.0)

    def forward(self, inputs: Exact, labels: Tensor) -> dict[str, Tensor]:
        model = self._model[0]
        distances, copies = inputs.tensor.float().tensor_split([len(labels)])
        logits = model.logits(distances)
        result = _costs(model, logits, distances, labels, self.weights)
        loss = functional.cross_entropy(
            logits, labels, self.class_weights, label_smoothing=self.weights.label_smoothing
        )
        if self.weights.l1:
            loss = loss + self.weights.l1 * l1_cost(model.classifier.weight, model.prototype_classes)
        if len(copies) and self.weights.hidden:
            hidden = hidden_cost(model.logits(copies), logits, labels, self.class_weights)
            loss = loss + self.weights.hidden * hidden
        return {**result, "loss": loss, "logits": logits.detach()}


def classes_objective(
    stage: str,
    model: ProtoPNet,
    head: nn.Linear,
    recipe: Recipe,
    *,
    weights: Tensor | None,
    log_scale: nn.Parameter | None,
) -> nn.Module:
    """What a stage minimizes on images of one class each."""
    if stage == "pretraining":
        smoothing = recipe.schedule.pretraining.label_smoothing
        return PlainObjective(model.encoder, head, smoothing, weights, recipe.costs.hidden)
    if stage == "classifier":
        return ClassifierObjective(model, recipe.costs, weights)
    companion = head if recipe.costs.companion else None
    return PrototypeObjective(model, recipe.costs, companion, weights, log_scale)


def _costs(
    model: ProtoPNet,
    logits: Tensor,
    distances: Tensor,
    labels: Tensor,
    weights: CostWeights,
    **more: Any,
) -> dict[str, Tensor]:
    return costs(
        logits,
        distances,
        labels,
        prototypes=model.prototypes,
        prototype_classes=model.prototype_classes,
        weights=weights,
        **more,
    )
