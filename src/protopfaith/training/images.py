"""Images on their way to the network: shared between processes, augmented, normalized."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protopfaith.data import ImageData
from protopfaith.data.hiding import hide, with_copies
from protopfaith.data.transforms import Augmentation, augment
from protopfaith.errors import ProtoPFaithError
from protopfaith.training.batches import ImageBatches, open_images, sequential_order, shuffled_order
from protopfaith.training.recipe import Recipe

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def seed_for(*parts: Any) -> int:
    """A seed that depends on all of `parts`, well mixed."""
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


class TrainingImages:
    """Training and validation images of one run in one process."""

    def __init__(self, fabric: Fabric, recipe: Recipe, data: ImageData):
        self.fabric, self.recipe, self.data = fabric, recipe, data
        resident, workers = recipe.compute.resident, recipe.compute.workers
        self.train = open_images(data.train, fabric.device, resident, workers)
        self.validation = open_images(data.validation, fabric.device, resident, workers)

    @property
    def iterations(self) -> int:
        """ImageBatches of one epoch."""
        return max(len(self.train) // self.recipe.optimization.batch_size, 1)

    def order(self, *when: Any) -> list[Tensor]:
        """The shuffled batches of the epoch named `when`: one order for all processes, a share for each."""
        generator = torch.Generator().manual_seed(seed_for(self.recipe.seed, "order", *when))
        batch_size = self.recipe.optimization.batch_size
        return shuffled_order(
            len(self.train), batch_size, generator, self.fabric.global_rank, self.fabric.world_size
        )

    def augmented(
        self, order: list[Tensor], generator: torch.Generator, augmentation: Augmentation
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Augmented, normalized training images and labels, batch by batch; where the recipe wants copies
        with hidden regions, they come after the images, and have no labels of their own."""
        hiding = augmentation.hide
        # Copies draw from a generator of their own: whole images are those of a training without copies.
        own = torch.Generator(generator.device).manual_seed(seed_for(generator.initial_seed(), "copies"))
        for pixels, labels in self.train.batches(order):
            images = self.data.preprocessing.normalize(augment(pixels, augmentation, generator))
            images = with_copies(images, hiding, own) if hiding.copies else hide(images, hiding, generator)
            yield self.format(images), labels

    @torch.no_grad()
    def outputs(self, images: ImageBatches, function: Callable[[Tensor], Tensor]) -> Tensor:
        """`function` (normalized batch to B x outputs) of every image, un-augmented: N x outputs."""
        batch_size = max(self.recipe.optimization.batch_size, 64)
        order = sequential_order(len(images), batch_size, self.fabric.global_rank, self.fabric.world_size)
        outputs: Tensor | None = None
        for indices, (pixels, _) in zip(order, images.batches(order), strict=True):
            batch = function(self.format(self.data.preprocessing.normalize(pixels)))
            if outputs is None:
                outputs = batch.new_zeros(len(images), batch.shape[1])
            outputs[indices.to(batch.device)] = batch
        if outputs is None:
            raise ProtoPFaithError(
                f"{len(images)} images are too few for {self.fabric.world_size} devices; use fewer."
            )
        return self.sum(outputs)

    def sum(self, tensor: Tensor) -> Tensor:
        """Added up over all processes."""
        if self.fabric.world_size == 1:
            return tensor
        total = self.fabric.all_reduce(tensor, reduce_op="sum")
        assert isinstance(total, Tensor)
        return total

    def format(self, images: Tensor) -> Tensor:
        if self.recipe.compute.channels_last:
            return images.contiguous(memory_format=torch.channels_last)
        return images
