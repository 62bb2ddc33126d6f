"""What each stage minimizes where images show several findings; as `objectives`, which is for classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from protopfaith.network import XProtoNet, occurrence_pooling
from protopfaith.training.finding_losses import (
    cluster_and_separation,
    consistency_cost,
    finding_cross_entropy,
    occurrence_cost,
    random_affine,
    warp,
)
from protopfaith.training.losses import CostWeights, diversity_cost
from protopfaith.training.objectives import Exact, plain_logits

if TYPE_CHECKING:
    from protopfaith.training.recipe import Recipe

MOVED = 4
"""One image in so many is moved for the consistency of occurrence maps, which needs V again."""


class PlainFindings(nn.Module):
    """Pre-training: encoder, average pooling, linear head, one sigmoid for each finding."""

    finding_weights: Tensor | None

    def __init__(self, encoder: nn.Module, head: nn.Linear, finding_weights: Tensor | None = None):
        super().__init__()
        self.encoder, self.head = encoder, head
        self.register_buffer("finding_weights", finding_weights, persistent=False)

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = plain_logits(self.head, self.encoder(images)).float()
        loss = finding_cross_entropy(logits, labels, self.finding_weights)
        return {"loss": loss, "cross_entropy": loss.detach(), "logits": logits.detach()}


class PrototypeFindings(nn.Module):
    """Warm-up and joint stages. All logits are multiplied by exp(`log_scale`) where there is one."""

    finding_weights: Tensor | None

    def __init__(
        self,
        model: XProtoNet,
        weights: CostWeights,
        finding_weights: Tensor | None = None,
        log_scale: nn.Parameter | None = None,
    ):
        super().__init__()
        self.model, self.weights, self.log_scale = model, weights, log_scale
        self.register_buffer("finding_weights", finding_weights, persistent=False)

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        model, weights = self.model, self.weights
        latent, occurrence = model.features(model.encoder(images))
        distances = model.seen_distances(occurrence_pooling(latent, occurrence))
        logits = model.logits(distances)
        if self.log_scale is not None:
            logits = self.log_scale.exp() * logits
        result = finding_costs(
            model, logits, distances, labels, weights=weights, finding_weights=self.finding_weights
        )
        if weights.occurrence:
            result["loss"] = result["loss"] + weights.occurrence * occurrence_cost(occurrence.float())
        if weights.consistency:
            some = max(len(images) // MOVED, 1)
            theta = random_affine(some, images.device)
            moved = model.features(model.encoder(warp(images[:some], theta)))[1]
            cost = consistency_cost(occurrence[:some].float(), moved.float(), theta)
            result["loss"] = result["loss"] + weights.consistency * cost
        if weights.diversity:
            groups = 2 * model.prototype_classes + (model.prototype_signs < 0).long()
            result["loss"] = result["loss"] + weights.diversity * diversity_cost(model.prototypes, groups)
        return {**result, "logits": logits.detach()}


class ClassifierFindings(nn.Module):
    """The stage of F, on distances: V, Z and Q are fixed, and with them cluster and separation."""

    finding_weights: Tensor | None

    def __init__(self, model: XProtoNet, weights: CostWeights, finding_weights: Tensor | None = None):
        super().__init__()
        self.classifier = model.classifier
        self.weights = weights
        self.register_buffer("finding_weights", finding_weights, persistent=False)
        self._model = [model]  # in a list: not a submodule, its parameters are not trained here

    def forward(self, inputs: Exact, labels: Tensor) -> dict[str, Tensor]:
        model, distances = self._model[0], inputs.tensor.float()
        logits = model.logits(distances)
        result = finding_costs(
            model, logits, distances, labels, weights=self.weights, finding_weights=self.finding_weights
        )
        loss = finding_cross_entropy(logits, labels, self.finding_weights)
        if self.weights.l1:
            loss = loss + self.weights.l1 * model.classifier.weight.abs().sum()
        return {**result, "loss": loss, "logits": logits.detach()}


def finding_costs(
    model: XProtoNet,
    logits: Tensor,
    distances: Tensor,
    labels: Tensor,
    *,
    weights: CostWeights,
    finding_weights: Tensor | None = None,
) -> dict[str, Tensor]:
    """Cross-entropy, cluster and separation by name, and their weighted sum as `loss`."""
    cross_entropy = finding_cross_entropy(logits, labels, finding_weights)
    cluster, separation = cluster_and_separation(
        distances, labels, model.prototype_classes, model.prototype_signs, finding_weights
    )
    loss = cross_entropy + weights.cluster * cluster - weights.separation * separation
    return {"loss": loss, "cross_entropy": cross_entropy, "cluster": cluster, "separation": separation}


def findings_objective(
    stage: str,
    model: XProtoNet,
    head: nn.Linear,
    recipe: Recipe,
    *,
    weights: Tensor | None,
    log_scale: nn.Parameter | None,
) -> nn.Module:
    """What a stage minimizes on images with several findings."""
    if stage == "pretraining":
        return PlainFindings(model.encoder, head, weights)
    if stage == "classifier":
        return ClassifierFindings(model, recipe.costs, weights)
    return PrototypeFindings(model, recipe.costs, weights, log_scale)
