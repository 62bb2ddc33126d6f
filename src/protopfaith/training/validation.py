"""How well a model does on the validation images, measured as each stage allows."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from protopfaith.network import PatchNetwork
from protopfaith.training.batches import ImageBatches
from protopfaith.training.images import TrainingImages
from protopfaith.training.metrics import accuracy_of
from protopfaith.training.objectives import PlainObjective
from protopfaith.training.schedule import Stage


def validation(
    stage: Stage, model: PatchNetwork, head: nn.Linear, images: TrainingImages
) -> Callable[[], float | None]:
    """A function that gives the validation balanced accuracy, or None where it is not measured.

    It leaves the model in evaluation mode. Before projection, a recipe may do without.
    """
    batches = images.validation
    if len(batches) == 0:
        return lambda: None
    if stage.name == "pretraining":
        return lambda: accuracy_of(plain_outputs(model, head, images), batches.labels)
    if stage.projected:  # distances do not change in this stage
        distances = stored_distances(model, images, batches)
        return lambda: accuracy_of(model.logits(distances), batches.labels)
    if images.recipe.compute.validate == "projected":
        return lambda: None
    return lambda: accuracy_of(model.logits(stored_distances(model, images, batches)), batches.labels)


def plain_outputs(model: PatchNetwork, head: nn.Linear, images: TrainingImages) -> Tensor:
    """The plain classifier's logits of the validation images, in evaluation mode: (N, C)."""
    return _outputs(model, images, images.validation, PlainObjective(model.encoder, head).logits)


def prototype_accuracy(model: PatchNetwork, images: TrainingImages) -> float | None:
    """The validation balanced accuracy of the prototype network as it is; None without validation images."""
    if len(images.validation) == 0:
        return None
    batches = images.validation
    return accuracy_of(model.logits(stored_distances(model, images, batches)), batches.labels)


def stored_distances(model: PatchNetwork, images: TrainingImages, batches: ImageBatches) -> Tensor:
    """The distances of all images, not augmented, in evaluation mode: (N, P)."""
    return _outputs(model, images, batches, model.distances)


def _outputs(
    model: PatchNetwork, images: TrainingImages, batches: ImageBatches, function: Callable[[Tensor], Tensor]
) -> Tensor:
    model.eval()
    return images.outputs(batches, function)
