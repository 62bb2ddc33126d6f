"""Prototypes of an XProtoNet on what they see of training images: at the start, and by projection.

A prototype for a finding becomes what it sees of an image that has it, one against it what it sees of an
image that has it not. Its source is the whole image; row and column are where the prototype looks most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from protopfaith.data import ImageSet, Preprocessing
from protopfaith.network import PrototypeSource, XProtoNet
from protopfaith.training.batches import ImageBatches, sequential_order

IMAGES = 64
"""Among which a prototype finds its start."""


def suits(labels: Tensor, owners: Tensor, signs: Tensor) -> Tensor:
    """Which images (N, C) a prototype may come from: (N, P); labels that are not known suit none."""
    wanted = (signs > 0).float()
    return labels[:, owners] == wanted


@torch.no_grad()
def seen_prototypes(
    model: XProtoNet, batches: ImageBatches, preprocessing: Preprocessing, generator: torch.Generator
) -> Tensor:
    """New prototypes (P, L): each what it sees of an image that it stands for, chosen at random."""
    training = model.training
    model.eval()
    prototypes = model.prototypes.detach().clone()
    fitting = suits(batches.labels, model.prototype_classes, model.prototype_signs).cpu()
    for prototype in range(len(prototypes)):
        images = fitting[:, prototype].nonzero().flatten()
        if len(images):
            chosen = images[torch.randint(len(images), (1,), generator=generator)]
            pixels, _ = next(iter(batches.batches([chosen])))
            prototypes[prototype] = model.seen(preprocessing.normalize(pixels))[0, prototype]
    model.train(training)
    return prototypes


@torch.no_grad()
def project_seen(
    model: XProtoNet,
    batches: ImageBatches,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    distinct: bool = False,
    batch_size: int = 64,
    rank: int = 0,
    ranks: int = 1,
    sum_over_ranks: Callable[[Tensor], Tensor] = lambda tensor: tensor,
) -> None:
    """Moves every prototype to the nearest of what it sees of the training images that it stands for, in
    place, and records the images. With `distinct` no two prototypes of a finding share an image."""
    training = model.training
    model.eval()
    order = sequential_order(len(batches), batch_size, rank, ranks)
    own = torch.zeros(len(batches), len(model.prototypes), device=model.prototypes.device)
    for indices, (pixels, _) in zip(order, batches.batches(order), strict=True):
        own[indices.to(own.device)] = model.distances(preprocessing.normalize(pixels)).float()
    fitting = suits(batches.labels, model.prototype_classes, model.prototype_signs)
    distances = sum_over_ranks(own).masked_fill(~fitting, torch.inf).cpu()
    chosen = nearest_images(distances, model.prototype_classes.tolist(), distinct)
    moved = model.prototypes.detach().clone()
    for prototype, image in enumerate(chosen):
        if image is None:
            continue  # no image suits it: the prototype stays
        pixels, _ = next(iter(batches.batches([torch.tensor([image])])))
        normal = preprocessing.normalize(pixels)
        moved[prototype] = model.seen(normal)[0, prototype].to(moved)
        row, column = strongest_place(model.occurrence_maps(normal)[0, prototype])
        model.sources[prototype] = PrototypeSource(images.paths[image], row, column, images.sha256(image))
    model.prototypes.copy_(moved)
    model.train(training)


def nearest_images(distances: Tensor, owners: Sequence[int], distinct: bool) -> list[int | None]:
    """For each prototype the nearest image (N x P; infinite: not for it), or None.

    With `distinct` the nearest pair of prototype and image comes first, and then no other prototype of the
    same owner gets that image; one that finds nothing left takes its nearest.

    >>> nearest_images(torch.tensor([[0.1, 0.2], [0.9, 0.3]]), [0, 0], distinct=True)
    [0, 1]
    """
    nearest, places = distances.min(0)
    found: list[int | None] = [
        int(place) if torch.isfinite(value) else None for value, place in zip(nearest, places, strict=True)
    ]
    if not distinct:
        return found
    for owner in set(owners):
        members = [index for index, one in enumerate(owners) if one == owner]
        free = distances[:, members].clone()
        for _ in members:
            image, member = divmod(int(free.argmin()), len(members))
            if not torch.isfinite(free[image, member]):
                break
            found[members[member]] = image
            free[image] = torch.inf
            free[:, member] = torch.inf
    return found


def strongest_place(occurrence: Tensor) -> tuple[int, int]:
    """Row and column of the largest value of a map (h, w).

    >>> strongest_place(torch.tensor([[0.0, 0.2], [0.9, 0.1]]))
    (1, 0)
    """
    return divmod(int(occurrence.argmax()), occurrence.shape[1])
