"""Projection: every prototype becomes the nearest latent vector of an un-augmented training image of its
class.

Its source (image, row, column) is kept with it, so that a person can look at what the prototype is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from protopfaith.data import ImageSet, Preprocessing
from protopfaith.network import ProtoPNet, PrototypeSource, distinct_prototypes
from protopfaith.training.batches import Batches, sequential_order

Sum = Callable[[Tensor], Tensor]  # adds a tensor up over all processes


@torch.no_grad()
def project(
    model: ProtoPNet,
    batches: Batches,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    distinct: bool = False,
    batch_size: int = 64,
    rank: int = 0,
    ranks: int = 1,
    sum_over_ranks: Sum = lambda tensor: tensor,
) -> None:
    """Projects ``model``'s prototypes in place and records their sources.

    The vectors are computed in evaluation mode and float32, as at inference, so that afterwards
    ``model.distance_maps`` of the source image is 0 (up to rounding) at the source's position.
    """
    training = model.training
    model.eval()
    table = class_table(model.prototype_classes, len(model.class_names))
    order = sequential_order(len(batches), batch_size, rank, ranks)
    distances = sum_over_ranks(_own_distances(model, batches, preprocessing, table, order))
    chosen = choose_images(distances, batches.labels, table, distinct)
    _move_prototypes(model, batches, images, preprocessing, chosen=chosen, batch_size=batch_size)
    model.train(training)


def class_table(prototype_classes: Tensor, classes: int) -> Tensor:
    """The prototypes of every class: classes x (most prototypes of a class), filled up with -1."""
    members = [(prototype_classes == label).nonzero().flatten() for label in range(classes)]
    widest = max(len(member) for member in members)
    table = torch.full((classes, widest), -1, dtype=torch.long, device=prototype_classes.device)
    for label, member in enumerate(members):
        table[label, : len(member)] = member
    return table


def _own_distances(
    model: ProtoPNet, batches: Batches, preprocessing: Preprocessing, table: Tensor, order: Sequence[Tensor]
) -> Tensor:
    """Distance of every image to the prototypes of its own class: N x K, zero for images of other ranks."""
    distances = torch.zeros(len(batches), table.shape[1], device=table.device)
    for indices, (pixels, labels) in zip(order, batches.batches(order), strict=True):
        batch = model.distances(preprocessing.normalize(pixels))
        distances[indices.to(table.device)] = batch.gather(1, table[labels].clamp(min=0)).float()
    return distances


def choose_images(distances: Tensor, labels: Tensor, table: Tensor, distinct: bool) -> Tensor:
    """The image (index) for every prototype: P.

    ``distances`` is N x K, to the K prototypes of the image's own class, ``table`` from :func:`class_table`.
    With ``distinct`` no two prototypes of a class share an image and their distances sum to the least
    possible; should a class have fewer images than prototypes, the rest fall back to their nearest image.
    """
    chosen = torch.full((int(table.max()) + 1,), -1, dtype=torch.long)
    distances, labels, table = distances.cpu(), labels.cpu(), table.cpu()
    for label, members in enumerate(table):
        members = members[members >= 0]
        images = (labels == label).nonzero().flatten()
        if len(images) == 0 or len(members) == 0:
            continue
        own = distances[images, : len(members)]
        nearest = own.argmin(dim=0)
        if distinct:
            from scipy.optimize import linear_sum_assignment

            columns, rows = linear_sum_assignment(own.T.numpy())
            nearest[torch.from_numpy(columns)] = torch.from_numpy(rows)
        chosen[members] = images[nearest]
    return chosen


def _move_prototypes(
    model: ProtoPNet,
    batches: Batches,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    chosen: Tensor,
    batch_size: int,
) -> None:
    """Computes the chosen images' latent vectors again, in float32, and takes the nearest of each image."""
    moved = model.prototypes.detach().clone()
    needed = chosen[chosen >= 0].unique()
    order = list(needed.split(batch_size))
    for indices, (pixels, _) in zip(order, batches.batches(order), strict=True):
        z = model.latent(preprocessing.normalize(pixels))
        for position, image in enumerate(indices.tolist()):
            for prototype in (chosen == image).nonzero().flatten().tolist():
                # Plain differences, not the expanded square: near zero they keep their digits.
                offsets = z[position] - model.prototypes[prototype][:, None, None]
                place = int(offsets.square().sum(dim=0).argmin())
                row, column = divmod(place, z.shape[-1])
                moved[prototype] = z[position, :, row, column]
                model.sources[prototype] = PrototypeSource(
                    images.paths[image], row, column, images.sha256(image)
                )
    model.prototypes.copy_(moved)


def count_distinct(model: ProtoPNet) -> int:
    """How many different prototypes there are; two of a class are the same when their squared distance is
    below 1e-6 * L, what rounding leaves of zero."""
    return distinct_prototypes(model, tolerance=1e-6 * model.prototypes.shape[1]).distinct
