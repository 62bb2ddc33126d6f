"""Projection: every prototype becomes the nearest latent vector of an un-augmented training image of its
class.

Its source (image, row, column) is kept with it, so that a person can look at what the prototype is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.arguments import instance, shown
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import (
    NO_CLASS,
    PatchNetwork,
    PrototypeSource,
    distinct_prototypes,
    equality_tolerance,
)
from protopfaith.training.batches import ImageBatches, sequential_order
from protopfaith.training.family import trainer_of

Sum = Callable[[Tensor], Tensor]  # adds a tensor up over all processes


@dataclass(frozen=True)
class Candidates:
    """Latent vectors that prototypes may become, nearest first: each prototype's M best images."""

    images: Tensor  # P x M: indices into the training set; -1 where a class has fewer images
    distances: Tensor  # P x M
    rows: Tensor  # P x M
    columns: Tensor  # P x M
    vectors: Tensor  # P x M x L


def project(
    model: PatchNetwork,
    batches: ImageBatches,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    distinct: bool = False,
    batch_size: int = 64,
    rank: int = 0,
    ranks: int = 1,
    sum_over_ranks: Sum = lambda tensor: tensor,
) -> None:
    """Projects `model`'s prototypes in place and records their sources: images of their class, or of any for
    prototypes that belong to none.

    The vectors are computed in evaluation mode and float32, as at inference, so that afterwards
    `model.distance_maps` of the source image is 0 (up to rounding) at the source's position. With
    `distinct` no two prototypes of a class share an image or a vector, as far as the class's images allow.

    Args:
        model: changed in place
        batches: the training images, by index
        images: what is known of them
        preprocessing: how they are prepared
        distinct: no two prototypes of a class share an image or a vector
        batch_size: images per forward pass
        rank: number of this process
        ranks: how many processes share the work
        sum_over_ranks: adds a tensor up over all of them

    >>> from protopfaith.data import load_data
    >>> from protopfaith.training.batches import ResidentImages
    >>> data = load_data("birds", size=32, train=16, validation=8, test=8)
    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", data.classes, prototypes_per_class=1, prototype_channels=8)
    >>> batches = ResidentImages(data.train, torch.device("cpu"))
    >>> project(model, batches, data.train, data.preprocessing)
    >>> model.sources[0].image in data.train.paths
    True
    """
    instance(model, PatchNetwork, "The network to project", "one of this package's")
    instance(images, ImageSet, "The training images", "an ImageSet")
    instance(preprocessing, Preprocessing, "How images are prepared", "a Preprocessing")
    if not callable(getattr(batches, "batches", None)):
        raise ProtoPFaithError(f"Images come in batches, as of ResidentImages, not in {shown(batches)}.")
    trainer_of(type(model)).project(
        model,
        batches,
        images,
        preprocessing,
        distinct=distinct,
        batch_size=batch_size,
        rank=rank,
        ranks=ranks,
        sum_over_ranks=sum_over_ranks,
    )


@torch.no_grad()
def project_patches(
    model: PatchNetwork,
    batches: ImageBatches,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    distinct: bool = False,
    batch_size: int = 64,
    rank: int = 0,
    ranks: int = 1,
    sum_over_ranks: Sum = lambda tensor: tensor,
) -> None:
    """The same for prototypes that are latent patches, as those of most families."""
    training = model.training
    model.eval()
    table, labels = class_table(model.prototype_classes, len(model.class_names)), batches.labels
    if bool((model.prototype_classes == NO_CLASS).all()):  # images of any class: as if there were one
        table = torch.arange(len(model.prototypes), device=table.device)[None]
        labels = torch.zeros_like(labels)
    order = sequential_order(len(batches), batch_size, rank, ranks)
    distances = sum_over_ranks(_own_distances(model, batches, preprocessing, table, order))
    ranked = rank_images(distances, labels, table, 4 * table.shape[1] + 16 if distinct else 1)
    candidates = _compute_candidates(model, batches, preprocessing, ranked, batch_size)
    chosen = torch.zeros(len(ranked), dtype=torch.long)
    if distinct:
        tolerance = equality_tolerance(model.prototypes.shape[1], model.activation)
        chosen = choose(candidates, model.prototype_classes.cpu(), tolerance)
    _move(model, images, candidates, chosen)
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
    model: PatchNetwork,
    batches: ImageBatches,
    preprocessing: Preprocessing,
    table: Tensor,
    order: Sequence[Tensor],
) -> Tensor:
    """Distance of every image to the prototypes of its own class: N x K, zero for images of other ranks."""
    distances = torch.zeros(len(batches), table.shape[1], device=table.device)
    for indices, (pixels, labels) in zip(order, batches.batches(order), strict=True):
        batch = model.distances(preprocessing.normalize(pixels))
        own = table[labels] if len(table) > 1 else table.expand(len(labels), -1)
        distances[indices.to(table.device)] = batch.gather(1, own.clamp(min=0)).float()
    return distances


def rank_images(distances: Tensor, labels: Tensor, table: Tensor, most: int) -> Tensor:
    """The nearest images of each prototype's class, nearest first: P x `most`, filled up with -1.

    `distances` is N x K, to the K prototypes of the image's own class; `table` is `class_table`'s.
    """
    distances, labels, table = distances.cpu(), labels.cpu(), table.cpu()
    ranked = torch.full((int(table.max()) + 1, most), -1, dtype=torch.long)
    for label, members in enumerate(table):
        own = (labels == label).nonzero().flatten()
        for place, prototype in enumerate(members[members >= 0].tolist()):
            nearest = own[distances[own, place].argsort(stable=True)[:most]]
            ranked[prototype, : len(nearest)] = nearest
    return ranked


def _compute_candidates(
    model: PatchNetwork, batches: ImageBatches, preprocessing: Preprocessing, ranked: Tensor, batch_size: int
) -> Candidates:
    """The ranked images' nearest latent vectors, computed as at inference."""
    shape = ranked.shape
    vectors = torch.zeros(*shape, model.prototypes.shape[1])
    distances = torch.full(shape, torch.inf)
    rows, columns = torch.zeros(shape).long(), torch.zeros(shape).long()
    order = list(ranked[ranked >= 0].unique().split(batch_size))
    for indices, (pixels, _) in zip(order, batches.batches(order), strict=True):
        z = model.latent(preprocessing.normalize(pixels)).float()
        for latent, image in zip(z, indices.tolist(), strict=True):
            prototypes, places = (ranked == image).nonzero(as_tuple=True)
            # Plain differences, not the expanded square: near zero they keep their digits.
            wanted = model.prototypes[prototypes.to(latent.device)]
            maps = (latent.flatten(1).T - wanted[:, None]).square().sum(dim=2)
            nearest, positions = maps.min(dim=1)
            distances[prototypes, places] = nearest.cpu()
            rows[prototypes, places] = positions.cpu() // latent.shape[2]
            columns[prototypes, places] = positions.cpu() % latent.shape[2]
            vectors[prototypes, places] = latent.flatten(1).T[positions].cpu()
    return Candidates(ranked, distances, rows, columns, vectors)


def choose(candidates: Candidates, prototype_classes: Tensor, tolerance: float | None = None) -> Tensor:
    """For each prototype one of its candidates, so that those of a class differ: P indices from 0 to M - 1.

    Greedy: the nearest pair of prototype and candidate first; then no other prototype of the class may have
    that image or that vector. A prototype that finds nothing left takes its nearest candidate.
    """
    chosen = torch.zeros(len(candidates.images), dtype=torch.long)
    if tolerance is None:
        tolerance = equality_tolerance(candidates.vectors.shape[2])
    for label in prototype_classes.unique():
        members = (prototype_classes == label).nonzero().flatten()
        vectors, images = candidates.vectors[members], candidates.images[members]
        free = candidates.distances[members].clone()
        for _ in members:
            best = int(free.argmin())
            member, place = divmod(best, free.shape[1])
            if free[member, place] == torch.inf:
                break
            chosen[members[member]] = place
            free[member] = torch.inf
            same = (vectors - vectors[member, place]).square().sum(dim=2) <= tolerance
            free[same | (images == images[member, place])] = torch.inf
    return chosen


def _move(model: PatchNetwork, images: ImageSet, candidates: Candidates, chosen: Tensor) -> None:
    moved = model.prototypes.detach().clone()
    for prototype, place in enumerate(chosen.tolist()):
        image = int(candidates.images[prototype, place])
        if image < 0:
            continue  # a class without images: the prototype stays
        row, column = int(candidates.rows[prototype, place]), int(candidates.columns[prototype, place])
        moved[prototype] = candidates.vectors[prototype, place].to(moved)
        source = PrototypeSource(images.paths[image], row, column, images.sha256(image))
        model.sources[prototype] = source
    model.prototypes.copy_(moved)


def count_distinct(model: PatchNetwork) -> int:
    """How many different prototypes there are, each class counted by itself.

    Args:
        model: the network

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> count_distinct(model)
    4
    """
    return distinct_prototypes(model).distinct
