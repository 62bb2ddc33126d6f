"""The training images that prototypes are parts of, found again by path and fingerprint."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property

from protopfaith.data import ImageData, ImageSet
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PrototypeSource

logger = logging.getLogger("protopfaith")
WITHOUT_SOURCES = "explain without sources (sources=False, or --no-sources)"  # how errors end


class SourceImages:
    """Looks sources up in image sets: by their path, and by content where an image moved."""

    def __init__(self, sets: Sequence[ImageSet]):
        self.sets = tuple(sets)
        self._told: set[str] = set()  # what has moved is told once

    @staticmethod
    def of(images: ImageData | ImageSet | Sequence[ImageSet]) -> SourceImages:
        if isinstance(images, ImageData):
            return SourceImages(tuple(images.sets().values()))
        return SourceImages((images,) if isinstance(images, ImageSet) else images)

    @cached_property
    def _by_path(self) -> dict[str, tuple[ImageSet, int]]:
        return {path: (images, i) for images in reversed(self.sets) for i, path in enumerate(images.paths)}

    @cached_property
    def _by_content(self) -> dict[str, tuple[ImageSet, int]]:
        return {r.sha256: (images, i) for images in reversed(self.sets) for i, r in enumerate(images.records)}

    def find(self, source: PrototypeSource, prototype: int) -> tuple[ImageSet, int]:
        """The set and index of a source; an error if its image is gone or is not what it was."""
        there = self._by_path.get(source.image)
        if there is not None and there[0].sha256(there[1]) == source.sha256:
            return there
        moved = self._by_content.get(source.sha256)
        if moved is not None:
            images, index = moved
            if source.image not in self._told:
                logger.warning("The source image %s is now at %s.", source.image, images.paths[index])
                self._told.add(source.image)
            return moved
        if there is not None:
            raise ProtoPFaithError(
                f"The source image {source.image} of prototype {prototype} has changed since training (its "
                f"SHA-256 differs); restore it, or {WITHOUT_SOURCES}."
            )
        raise ProtoPFaithError(
            f"The source image {source.image} of prototype {prototype} is not among the images any more; "
            f"restore it, or {WITHOUT_SOURCES}."
        )
