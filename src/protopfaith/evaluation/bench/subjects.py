"""What is judged: prototypes on the images that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.sources import SourceImages
from protopfaith.network import NO_CLASS, PatchNetwork, distinct_prototypes


@dataclass(frozen=True, eq=False)
class Subject:
    """A training image with the prototypes that are parts of it.

    Args:
        prototypes: their numbers
        path: of the image
        image: normalized, C x H x W, on the network's device
        pixels: uint8, C x H x W
        foreground: bool H x W: where the object is, if that is known
        others: prototypes of other classes, to test combinations with
    """

    prototypes: tuple[int, ...]
    path: str
    image: Tensor
    pixels: Tensor
    foreground: Tensor | None
    others: tuple[int, ...]


def choose_prototypes(
    model: PatchNetwork, prototypes: int | Sequence[int] | None = None, seed: int = 0
) -> list[int]:
    """A random sample of so many prototypes, given ones, or all (None); of equal ones only the first.

    Samples are nested: the first 8 of 100 are those that a sample of 8 gives.
    """
    known = [index for index, source in enumerate(model.sources) if source is not None]
    if not known:
        raise ProtoPFaithError(
            "This network's prototypes have no source images, as they were never projected, or converted "
            "without their images; train it to the end of a cycle first, or convert it with --root."
        )
    if prototypes is not None and not isinstance(prototypes, int):
        unknown = sorted(set(prototypes) - set(known))
        if unknown:
            raise ProtoPFaithError(
                f"There is no prototype {unknown[0]} with a source image; choose from 0 to "
                f"{len(model.sources) - 1}."
            )
        return list(prototypes)
    duplicates = distinct_prototypes(model).duplicates
    distinct = torch.tensor([index for index in known if index not in set(duplicates)])
    generator = torch.Generator().manual_seed(seed)
    shuffled = distinct[torch.randperm(len(distinct), generator=generator)]
    return shuffled[:prototypes].tolist()


def find_subjects(
    model: PatchNetwork, data: ImageData, prototypes: Sequence[int], preprocessing: Preprocessing
) -> list[Subject]:
    """The source images of the prototypes, each once, in the order in which they first come."""
    sources = SourceImages.of(data)
    by_image: dict[tuple[int, int], tuple[ImageSet, int, list[int]]] = {}
    for prototype in prototypes:
        source = model.sources[prototype]
        assert source is not None
        images, index = sources.find(source, prototype)
        by_image.setdefault((id(images), index), (images, index, []))[2].append(prototype)
    return [_subject(model, *found, preprocessing) for found in by_image.values()]


def prototypes_of(subjects: Sequence[Subject]) -> list[int]:
    """All prototypes, image after image."""
    return [prototype for subject in subjects for prototype in subject.prototypes]


def with_prototypes(subjects: Sequence[Subject], prototypes: Sequence[int]) -> list[Subject]:
    """The images of these prototypes, with them alone."""
    wanted = set(prototypes)
    kept = [(s, tuple(p for p in s.prototypes if p in wanted)) for s in subjects]
    return [replace(subject, prototypes=some) for subject, some in kept if some]


def _subject(
    model: PatchNetwork, images: ImageSet, index: int, prototypes: list[int], preprocessing: Preprocessing
) -> Subject:
    pixels = images.image(index)
    image = preprocessing.normalize(pixels).to(model.prototypes.device)
    classes = model.prototype_classes.cpu()
    owner = int(classes[prototypes[0]])
    others = torch.where(classes != owner)[0].tolist()
    if owner == NO_CLASS:  # any other will do
        others = [one for one in range(len(classes)) if one not in prototypes]
    return Subject(
        tuple(prototypes), images.paths[index], image, pixels, images.foreground(index), tuple(others)
    )
