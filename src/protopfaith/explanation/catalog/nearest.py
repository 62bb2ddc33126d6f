"""Which training images each prototype is near, and which prototypes decide for anything at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.data import ImageSet, Preprocessing
from protopfaith.explanation.decomposition import similarities
from protopfaith.network import PrototypeNetwork, adds_up, outcome_of, route_of, weights_of


@dataclass(frozen=True)
class Patch:
    """A place in a training image: the latent position that is nearest to a prototype.

    Args:
        image: index into the training set
        path: of the image
        label: its class
        row: of the latent position
        column: of the latent position
        distance: there, to the prototype
    """

    image: int
    path: str
    label: int
    row: int
    column: int
    distance: float


@dataclass(frozen=True, eq=False)
class Survey:
    """What all training images have to do with all prototypes.

    Args:
        nearest: for each prototype, nearest first
        uses: (P,): images, other than its source, for which it contributes most to the predicted class
        latent_size: height and width
    """

    nearest: tuple[tuple[Patch, ...], ...]
    uses: Tensor
    latent_size: tuple[int, int]


@torch.no_grad()
def survey(
    model: PrototypeNetwork,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    nearest: int = 5,
    batch_size: int = 64,
) -> Survey:
    """Streams over the images; holds no more than the `nearest` patches of every prototype.

    An image *uses* the prototype that contributes most to the class predicted for it; on the way through a
    tree those that it resembles, and of several findings the nearest one of each. A prototype's own source
    image does not count: there its distance is zero by construction. Equal prototypes share their uses.

    Args:
        model: the network.
        images: the training images.
        preprocessing: how they are prepared for the network.
        nearest: how many patches to keep for each prototype.
        batch_size: images per forward pass.
    """
    uses = torch.zeros(len(model.prototypes), dtype=torch.long)
    closest = _Closest(len(model.prototypes), nearest)
    size = (1, 1)
    for start in range(0, len(images), batch_size):
        indices = range(start, min(start + batch_size, len(images)))
        pixels = torch.stack([preprocessing.uint8(images.image(i)) for i in indices])
        maps = model.distance_maps(preprocessing.normalize(pixels.to(model.prototypes.device))).cpu()
        size = (maps.shape[2], maps.shape[3])
        distances = closest.add(maps, indices)
        uses += _uses(model, distances, [images.sha256(index) for index in indices])
    return Survey(_patches(images, closest.distances, closest.places, size), uses, size)


class _Closest:
    """The nearest places of every prototype among those seen so far, (P, nearest)."""

    def __init__(self, prototypes: int, nearest: int):
        self.nearest = nearest
        self.distances = torch.full((prototypes, 0), torch.inf)
        self.places = torch.zeros(prototypes, 0, dtype=torch.long)  # image times positions plus position

    def add(self, maps: Tensor, indices: Sequence[int]) -> Tensor:
        """Takes distance maps (B, P, h, w) in; returns each image's smallest distances (B, P)."""
        flat = maps.flatten(2)
        distances, positions = flat.min(dim=2)
        places = torch.tensor(list(indices))[:, None] * flat.shape[2] + positions
        ordered, order = torch.cat([self.distances, distances.T], 1).sort(dim=1, stable=True)
        self.places = torch.cat([self.places, places.T], 1).gather(1, order)[:, : self.nearest]
        self.distances = ordered[:, : self.nearest]
        return distances


def _uses(model: PrototypeNetwork, distances: Tensor, fingerprints: Sequence[str]) -> Tensor:
    """How many of the images with `distances` (B, P) use each prototype: (P,)."""
    sources = [source and source.sha256 for source in model.sources]
    own_source = torch.tensor([[source == one for source in sources] for one in fingerprints])
    if not adds_up(model):
        return (_turned(model, distances) & ~own_source).sum(0)
    if outcome_of(model) == "several":
        return _nearest_of_each(model, distances.masked_fill(own_source, torch.inf)).sum(0)
    owners, weights = model.prototype_classes.cpu(), weights_of(model).cpu()
    similarity = similarities(model, distances)
    predicted = (similarity @ weights.T).argmax(1)
    contributions = weights[predicted] * similarity
    of_another_class = owners != predicted[:, None]
    contributions[of_another_class | own_source] = -torch.inf
    most = contributions.amax(1, keepdim=True)
    used = torch.isclose(contributions, most, rtol=1e-6, atol=1e-6) & torch.isfinite(most)
    return used.sum(0)


def _nearest_of_each(model: PrototypeNetwork, distances: Tensor) -> Tensor:
    """(B, P), bool: of every finding the prototype that an image is nearest to, for it or against it."""
    found = torch.zeros(distances.shape, dtype=torch.bool)
    for label in range(len(model.class_names)):
        own = torch.where(model.prototype_classes.cpu() == label)[0]
        if len(own):
            mine = distances[:, own]
            found[:, own] = (mine == mine.amin(1, keepdim=True)) & mine.isfinite()
    return found


def _turned(model: PrototypeNetwork, distances: Tensor) -> Tensor:
    """(B, P), bool: the prototypes that images resemble on their way through a tree, or the nearest."""
    found = torch.zeros(distances.shape, dtype=torch.bool)
    for number, row in enumerate(distances):
        route = route_of(model, row)
        if route is None:
            found[number, int(row.argmin())] = True
        for turn in route.turns if route is not None else ():
            found[number, turn.prototype] = turn.right
    return found


def _patches(
    images: ImageSet, distances: Tensor, where: Tensor, size: tuple[int, int]
) -> tuple[tuple[Patch, ...], ...]:
    def patch(number: int, distance: float) -> Patch:
        image, position = divmod(number, size[0] * size[1])
        label = images.records[image].label
        return Patch(image, images.paths[image], label, position // size[1], position % size[1], distance)

    return tuple(
        tuple(patch(int(n), float(d)) for n, d in zip(row, line, strict=True))
        for row, line in zip(where.tolist(), distances.tolist(), strict=True)
    )


def patch_box(patch: Patch, latent: Sequence[int], size: Sequence[int]) -> tuple[int, int, int, int]:
    """The pixels (left, top, right, bottom) that lie under a latent position when the map is enlarged.

    Only a place to look at: the position's receptive field is larger.
    """
    down, across = size[0] / latent[0], size[1] / latent[1]
    left, top = patch.column * across, patch.row * down
    return round(left), round(top), round(left + across), round(top + down)
