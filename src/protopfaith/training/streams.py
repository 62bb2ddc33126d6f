"""What a stage is trained on: augmented images, or distances for the F stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from protopfaith.data.hiding import Hiding
from protopfaith.data.transforms import Augmentation
from protopfaith.network import PatchNetwork
from protopfaith.training.batches import ahead
from protopfaith.training.images import TrainingImages
from protopfaith.training.objectives import Exact
from protopfaith.training.schedule import Stage
from protopfaith.training.validation import stored_distances

BatchStream = Callable[[list[Tensor]], Iterator[tuple[Tensor | Exact, Tensor]]]
"""From the indices of every batch of an epoch to its inputs and labels."""


def stage_batches(
    stage: Stage, model: PatchNetwork, images: TrainingImages, generator: torch.Generator
) -> BatchStream:
    """A stage's training batches.

    Args:
        stage: which one.
        model: the network, whose distances the F stage learns from.
        images: the training images.
        generator: of the augmentation.
    """
    augmentation = _augmentation(stage, images.recipe.augmentation)
    if stage.name != "classifier":
        return lambda order: ahead(images.augmented(order, generator, augmentation), images.fabric.device)
    if images.recipe.schedule.classifier.augment:
        full_size = replace(augmentation, size=None)
        return lambda order: _augmented_distances(model, images, order, generator, full_size)
    distances = stored_distances(model, images, images.train)
    return lambda order: _stored(distances, images.train.labels, order)


def _augmentation(stage: Stage, augmentation: Augmentation) -> Augmentation:
    """The recipe's; regions are hidden in the stages that it says."""
    kind = "plain" if stage.name == "pretraining" else "prototypes"
    hidden = augmentation.hide.stages in ("all", kind)
    return augmentation if hidden else replace(augmentation, hide=Hiding())


def _augmented_distances(
    model: PatchNetwork,
    images: TrainingImages,
    order: list[Tensor],
    generator: torch.Generator,
    augmentation: Augmentation,
) -> Iterator[tuple[Exact, Tensor]]:
    """At full size: F learns on the distances that images will have."""
    for pixels, labels in images.augmented(order, generator, augmentation):
        with torch.no_grad(), images.fabric.autocast():
            # Copies by themselves: how many images there are decides how the last bits are rounded.
            parts = [part for part in pixels.tensor_split([len(labels)]) if len(part)]
            distances = torch.cat([model.distances(part) for part in parts]).float()
        yield Exact(distances), labels


def _stored(distances: Tensor, labels: Tensor, order: list[Tensor]) -> Iterator[tuple[Exact, Tensor]]:
    for indices in (part.to(labels.device) for part in order):
        yield Exact(distances[indices]), labels[indices]
