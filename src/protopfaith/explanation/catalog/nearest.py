"""Which training images each prototype is near, and which prototypes decide for anything at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.data import ImageSet, Preprocessing
from protopfaith.explanation.decomposition import similarities
from protopfaith.network import ProtoPNet


@dataclass(frozen=True)
class Patch:
    """A place in a training image: the latent position that is nearest to a prototype."""

    image: int  # index into the training set
    path: str
    label: int
    row: int
    column: int
    distance: float


@dataclass(frozen=True, eq=False)
class Survey:
    """What all training images have to do with all prototypes."""

    nearest: tuple[tuple[Patch, ...], ...]  # for each prototype, nearest first
    uses: Tensor  # (P,): images, other than its source, for which it contributes most to the predicted class
    latent_size: tuple[int, int]


@torch.no_grad()
def survey(
    model: ProtoPNet,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    nearest: int = 5,
    batch_size: int = 64,
) -> Survey:
    """Streams over the images; holds no more than the `nearest` patches of every prototype.

    An image *uses* the prototype that contributes most to the class predicted for it. A prototype's own
    source image does not count: there its distance is zero by construction. Equal prototypes share their
    uses.
    """
    device, count = model.prototypes.device, len(model.prototypes)
    best = torch.full((count, 0), torch.inf)
    where = torch.zeros(count, 0, dtype=torch.long)
    uses = torch.zeros(count, dtype=torch.long)
    sources = [source and source.sha256 for source in model.sources]
    owners, weights = model.prototype_classes.cpu(), model.classifier.weight.detach().cpu()
    size = (1, 1)
    for start in range(0, len(images), batch_size):
        indices = range(start, min(start + batch_size, len(images)))
        pixels = torch.stack([preprocessing.uint8(images.image(i)) for i in indices]).to(device)
        maps = model.distance_maps(preprocessing.normalize(pixels)).cpu()
        size = (maps.shape[2], maps.shape[3])
        distances, positions = maps.flatten(2).min(dim=2)  # (B, P)
        numbers = torch.tensor(indices)[:, None] * (size[0] * size[1]) + positions
        best, order = torch.cat([best, distances.T], 1).sort(dim=1, stable=True)
        where = torch.cat([where, numbers.T], 1).gather(1, order)[:, :nearest]
        best = best[:, :nearest]
        similarity = similarities(model, distances)
        predicted = (similarity @ weights.T).argmax(1)
        for row, index in enumerate(indices):
            contribution = weights[predicted[row]] * similarity[row]
            contribution[owners != predicted[row]] = -torch.inf
            own = torch.tensor([sha == images.sha256(index) for sha in sources])
            contribution[own] = -torch.inf
            if torch.isfinite(contribution).any():
                uses += torch.isclose(contribution, contribution.max(), rtol=1e-6, atol=1e-6).long()
    return Survey(_patches(images, best, where, size), uses, size)


def _patches(
    images: ImageSet, distances: Tensor, where: Tensor, size: tuple[int, int]
) -> tuple[tuple[Patch, ...], ...]:
    def patch(number: int, distance: float) -> Patch:
        image, position = divmod(number, size[0] * size[1])
        label = int(images.labels[image])
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
