"""Where the prototypes of a converted network come from: as its files say, or the nearest patch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from protopfaith.arguments import shown
from protopfaith.conversion.foreign import SourceHint
from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import plain_file
from protopfaith.network import NO_CLASS, PatchNetwork, PrototypeSource

IMAGE_FOLDER = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""What torchvision's ImageFolder takes for images."""
TRIED = 16  # numbers, before all are looked up in an order
Item = tuple[ImageSet, int]
SAME = 1e-3  # of the median distance on an image: nearer than this, a patch is the prototype up to rounding


@dataclass(frozen=True)
class FoundSources:
    """How many prototypes have their source by its number in their authors' files, how many by the nearest
    patch, and of all how many lie on their patch: the others were never projected, or on other images."""

    by_index: int
    by_patch: int
    on_patch: int

    def __str__(self) -> str:
        ways = [f"{self.by_index} by the image's number"] if self.by_index else []
        ways += [f"{self.by_patch} by the nearest patch of their class"] if self.by_patch else []
        count = self.by_index + self.by_patch
        apart = count - self.on_patch
        told = f"Sources: {' and '.join(ways)}"
        if apart:
            return f"{told}; {apart} of {count} do not lie on their patch, which only resembles them."
        return f"{told}; all lie on their patch."


@dataclass(frozen=True)
class _Place:
    images: ImageSet
    index: int
    row: int
    column: int
    distance: float
    usual: float  # the median distance on this image

    @property
    def is_same(self) -> bool:
        return self.distance <= SAME * self.usual

    def source(self) -> PrototypeSource:
        path, sha256 = self.images.paths[self.index], self.images.sha256(self.index)
        return PrototypeSource(path, self.row, self.column, sha256, self.is_same)


def find_sources(
    model: PatchNetwork, data: ImageData, hints: Mapping[int, SourceHint], batch_size: int = 32
) -> FoundSources:
    """Gives every prototype of `model` its source, in place.

    An image that is known by its number is believed if the prototype lies on a patch of it. For all other
    prototypes it is the nearest patch among the training and validation images of their class; among test
    images only if the prototype lies on it, since they may have been split off here.

    Args:
        model: the converted network
        data: its images
        hints: numbers of images, by prototype
        batch_size: images per forward pass
    """
    by_index = _hinted(model, data, hints, batch_size)
    nearest: dict[int, _Place] = {}
    for images in (data.train, data.validation, data.test):
        missing = [
            p for p in range(len(model.prototypes)) if p not in by_index and not _lies_on(nearest.get(p))
        ]
        found = _nearest(model, images, data.preprocessing, missing, batch_size) if missing else {}
        nearest |= {
            p: place
            for p, place in found.items()
            if p not in nearest
            or (place.distance < nearest[p].distance and (images is not data.test or place.is_same))
        }
    places = by_index | nearest
    for prototype, place in places.items():
        model.sources[prototype] = place.source()
    return FoundSources(len(by_index), len(nearest), sum(place.is_same for place in places.values()))


def _lies_on(place: _Place | None) -> bool:
    return place is not None and place.is_same


def _hinted(
    model: PatchNetwork, data: ImageData, hints: Mapping[int, SourceHint], batch_size: int
) -> dict[int, _Place]:
    """The prototypes that lie on the image of their number, in the order of images that most numbers fit."""
    best: dict[int, _Place] = {}
    for order in _orders(data):
        known = {p: order[hint.image] for p, hint in hints.items() if hint.image < len(order)}
        some = dict(list(known.items())[:TRIED])  # a wrong order shows at once
        if len(_lying_on(model, some, data.preprocessing, batch_size)) * 2 < len(some):
            continue
        found = _lying_on(model, known, data.preprocessing, batch_size)
        if len(found) > len(best):
            best = found
        if len(best) == len(hints):
            break
    return best


def _lying_on(
    model: PatchNetwork, known: Mapping[int, Item], preprocessing: Preprocessing, batch_size: int
) -> dict[int, _Place]:
    """Those of the prototypes that lie on a patch of their image; each image is looked at once."""
    by_image: dict[tuple[int, int], list[int]] = {}
    sets: dict[int, ImageSet] = {}
    for prototype, (images, index) in known.items():
        sets[id(images)] = images
        by_image.setdefault((id(images), index), []).append(prototype)
    found = {}
    for number, images in sets.items():
        wanted = [index for one, index in by_image if one == number]
        for start in range(0, len(wanted), batch_size):
            batch = wanted[start : start + batch_size]
            for maps, index in zip(_maps(model, images, batch, preprocessing), batch, strict=True):
                for prototype in by_image[number, index]:
                    found[prototype] = _place(maps[prototype], images, index)
    return {prototype: place for prototype, place in found.items() if place.is_same}


def _orders(data: ImageData) -> Sequence[list[Item]]:
    """As ImageFolder may have numbered the images: those of training with a validation set that was split off
    here, all where they lie in one folder, or those of training alone."""
    ways = ([data.train, data.validation], list(data.sets().values()), [data.train])
    return [_as_image_folder([(one, i) for one in sets for i in range(len(one))]) for sets in ways]


def _as_image_folder(images: list[Item]) -> list[Item]:
    """Class by class, each sorted by name."""

    def place(item: Item) -> tuple[str, str]:
        path = PurePosixPath(item[0].paths[item[1]])
        return item[0].classes[int(item[0].labels[item[1]])], str(path)

    known = [item for item in images if PurePosixPath(item[0].paths[item[1]]).suffix.lower() in IMAGE_FOLDER]
    return sorted(known, key=place)


def _nearest(
    model: PatchNetwork,
    images: ImageSet,
    preprocessing: Preprocessing,
    prototypes: Sequence[int],
    batch_size: int,
) -> dict[int, _Place]:
    """The nearest patch of each prototype among the images of its class, or all where it has none."""
    owners = model.prototype_classes.tolist()
    members: dict[int, list[int]] = {}
    for prototype in prototypes:
        members.setdefault(owners[prototype], []).append(prototype)
    free = members.get(NO_CLASS, [])  # of any class
    wanted = [index for index, label in enumerate(images.labels.tolist()) if free or label in members]
    best: dict[int, _Place] = {}
    for start in range(0, len(wanted), batch_size):
        batch = wanted[start : start + batch_size]
        for maps, index in zip(_maps(model, images, batch, preprocessing), batch, strict=True):
            for prototype in [*members.get(int(images.labels[index]), []), *free]:
                nearest = float(maps[prototype].min())
                if prototype not in best or nearest < best[prototype].distance:
                    best[prototype] = _place(maps[prototype], images, index)
    return best


@torch.no_grad()
def _maps(
    model: PatchNetwork, images: ImageSet, indices: Sequence[int], preprocessing: Preprocessing
) -> Tensor:
    pixels = torch.stack([preprocessing.uint8(images.image(index)) for index in indices])
    return model.distance_maps(preprocessing.normalize(pixels.to(model.prototypes.device))).cpu()


def _place(distances: Tensor, images: ImageSet, index: int) -> _Place:
    """Where the distance map (h, w) of one prototype on one image is smallest."""
    row, column = divmod(int(distances.argmin()), distances.shape[1])
    return _Place(images, index, row, column, float(distances.min()), float(distances.median()))


def read_boxes(path: Path | str, count: int) -> dict[int, SourceHint]:
    """The image of each prototype from a `bb*.npy` of the original program: one row for each prototype, the
    number of its image first; -1 stands for none.

    Args:
        path: the file
        count: of the prototypes
    """
    import numpy as np

    try:
        boxes = np.load(plain_file(path), mmap_mode="r", allow_pickle=False)  # what it declares may be huge
        if not isinstance(boxes, np.ndarray):
            raise ValueError("several arrays")
    except Exception as error:  # NumPy reads the header as Python's source, and raises almost anything
        raise ProtoPFaithError(
            f"{path} cannot be read as an array; give a bb*.npy file that the original ProtoPNet wrote."
        ) from error
    if boxes.ndim != 2 or boxes.shape[0] != count or boxes.shape[1] < 5 or boxes.dtype.kind not in "iuf":
        raise ProtoPFaithError(
            f"{path} has the shape {shown(boxes.shape)}, but there should be one row of image number and box "
            f"for each of the {count} prototypes; give the bb*.npy of the same network."
        )
    numbers = enumerate(boxes[:, 0].tolist())
    return {place: SourceHint(int(image)) for place, image in numbers if 0 <= image < math.inf}
