"""How well a model does on the validation images, measured as each stage allows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from protopfaith.network import ProtoPNet
from protopfaith.training.batches import Batches
from protopfaith.training.metrics import add_to_confusion, balanced_accuracy
from protopfaith.training.objectives import PlainObjective
from protopfaith.training.schedule import Stage
from protopfaith.training.supply import Supply


def validation(stage: Stage, model: ProtoPNet, head: nn.Linear, supply: Supply) -> Callable[[], float | None]:
    """A function that gives the validation balanced accuracy, or None where it is not measured.

    It leaves the model in evaluation mode. Before projection, a recipe may do without.
    """
    images = supply.validation
    if len(images) == 0:
        return lambda: None
    if stage.name == "pretraining":
        plain = PlainObjective(model.encoder, head)
        return lambda: _accuracy(_outputs(model, supply, images, plain.logits), images)
    if stage.projected:  # distances do not change in this stage
        distances = stored_distances(model, supply, images)
        return lambda: _accuracy(model.logits(distances), images)
    if supply.recipe.compute.validate == "projected":
        return lambda: None
    return lambda: _accuracy(model.logits(stored_distances(model, supply, images)), images)


def stored_distances(model: ProtoPNet, supply: Supply, images: Batches) -> Tensor:
    """The distances of all images, not augmented, in evaluation mode: (N, P)."""
    return _outputs(model, supply, images, model.distances)


def _outputs(
    model: ProtoPNet, supply: Supply, images: Batches, function: Callable[[Tensor], Tensor]
) -> Tensor:
    model.eval()
    return supply.outputs(images, function)


@torch.no_grad()
def _accuracy(logits: Tensor, images: Batches) -> float:
    classes = logits.shape[1]
    confusion = torch.zeros(classes, classes, dtype=torch.long, device=logits.device)
    add_to_confusion(confusion, logits, images.labels)
    return balanced_accuracy(confusion)
