"""Sources: the training images that prototypes are parts of, found again and explained once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.game import Progress, distances_and_outputs, play
from protopfaith.explanation.protopnet_map import crop_box, own_maps
from protopfaith.explanation.regions import RegionValues, region_values
from protopfaith.explanation.settings import Settings
from protopfaith.files import is_file
from protopfaith.network import FusedProtoPNet, PrototypeSource, class_of
from protopfaith.shapley import Attribution, Players
from protopfaith.specs import WINDOW

logger = logging.getLogger("protopfaith")
WITHOUT_SOURCES = "explain without sources (sources=False, or --no-sources)"  # how errors end


@dataclass(frozen=True, eq=False)
class SourceSide:
    """A prototype on the training image that it is a part of.

    Args:
        path: of the training image
        pixels: uint8, C x H x W
        regions: the regions' shares in the distance
        activation: the network's own map, (H, W)
        box: of its 95th percentile
        evaluations: of the game on that image
        precision: relative error that was reached

    >>> from protopfaith.explanation import Explainer
    >>> explainer = Explainer("runs/birds")
    >>> side = explainer.sources.explain([0], Settings(players=16, budget=64))[0]
    >>> side.pixels.shape, side.evaluations
    (torch.Size([3, 32, 32]), 16)
    """

    path: str
    pixels: Tensor
    regions: RegionValues
    activation: Tensor
    box: tuple[int, int, int, int]
    evaluations: int
    precision: float

    def __repr__(self) -> str:
        return f"SourceSide({self.path!r}, {self.evaluations} evaluations, precision={self.precision:.2g})"


@dataclass(frozen=True, eq=False)
class SourcePart:
    """The part of a training image that a prototype is, for the eye alone: without any game.

    Args:
        path: of the training image
        pixels: uint8, C x H x W
        box: of the part (left, top, right, bottom), as in `SourceSide`

    >>> from protopfaith.explanation import Explainer
    >>> Explainer("runs/birds").sources.part(0).pixels.shape
    torch.Size([3, 32, 32])
    """

    path: str
    pixels: Tensor
    box: tuple[int, int, int, int]

    def __repr__(self) -> str:
        return f"SourcePart({self.path!r}, {self.box})"


class SourceImages:
    """Looks sources up in image sets: by their path, and by content where an image moved.

    Args:
        sets: the images among which to look
    """

    def __init__(self, sets: Sequence[ImageSet]):
        self.sets = tuple(sets)
        self._told: set[str] = set()  # what has moved is told once

    @staticmethod
    def of(images: ImageData | ImageSet | Sequence[ImageSet]) -> SourceImages:
        """All sets of a data set, or those given."""
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


class Sources:
    """The prototypes of a network on their source images, each explained once.

    Args:
        network: whose prototypes they are, as games play it
        preprocessing: how its images are prepared
        images: among which sources are found; None where nothing is known of them
        weights_hash: what results are kept under, together with the settings
        folder: where results are kept between programs; None keeps them in memory alone
    """

    def __init__(
        self,
        network: FusedProtoPNet,
        preprocessing: Preprocessing | None,
        images: SourceImages | None,
        weights_hash: str,
        folder: Path | None = None,
    ):
        self.network, self.model = network, network.model
        self.preprocessing, self.images = preprocessing, images
        self.weights_hash, self.folder = weights_hash, folder
        self.evaluations = 0  # made so far
        self._kept: dict[tuple[str, int], SourceSide] = {}

    def __repr__(self) -> str:
        return f"Sources({len(self.model.prototypes)} prototypes, {len(self._kept)} explained)"

    def source(self, prototype: int) -> PrototypeSource:
        """Where a prototype comes from; an error for one that was never projected."""
        source = self.model.sources[prototype]
        if source is None:
            name = class_of(self.model, prototype)
            of = f" ({name})" if name else ""
            raise ProtoPFaithError(
                f"Prototype {prototype}{of} has no source image because the network's prototypes were "
                "not projected, or it was converted without its images; train it through a projection, "
                f"convert it with --root, or {WITHOUT_SOURCES}."
            )
        return source

    def find(self, prototype: int) -> tuple[ImageSet, int]:
        """The set and index of a prototype's source image; an error where it is unknown, changed or gone."""
        source = self.source(prototype)
        return self._known_images().find(source, prototype)

    def check(self, prototypes: Sequence[int] | None = None) -> None:
        """Raises if the sources of some prototypes, or of all whatever they are, cannot be shown."""
        for prototype in prototypes or ():
            self.find(prototype)
        if prototypes is None:
            if not any(self.model.sources):
                self.source(0)
            self._known_images()

    def part(self, prototype: int) -> SourcePart | None:
        """The part of its source image that a prototype is; None where the image is unknown or gone."""
        try:
            images, index = self.find(prototype)
            pixels = images.image(index)
            image = self._normalized(pixels)
        except ProtoPFaithError:
            return None
        return SourcePart(images.paths[index], pixels, crop_box(self._activations(image, [prototype])[0]))

    def explain(
        self, prototypes: Sequence[int], settings: Settings, progress: Progress | None = None
    ) -> dict[int, SourceSide]:
        """Each prototype on its source image; computed once, then read from the cache."""
        settings, key = self._keyed(settings)
        by_image: dict[str, list[int]] = {}
        for prototype in prototypes:
            if (key, prototype) not in self._kept:
                by_image.setdefault(self.source(prototype).sha256, []).append(prototype)
        for number, members in enumerate(by_image.values()):
            told = _cumulative(progress, number, len(by_image))
            sides = self._explain_image(members, settings, key, told)
            self._kept |= {(key, prototype): side for prototype, side in sides.items()}
        return {prototype: self._kept[key, prototype] for prototype in prototypes}

    def known(self, prototypes: Sequence[int], settings: Settings) -> bool:
        """Whether `explain` would find everything in its cache."""
        _, key = self._keyed(settings)
        return all((key, p) in self._kept or self._read(key, p) is not None for p in prototypes)

    def kept(self, prototype: int, settings: Settings) -> bool:
        """Whether the run's cache has it, for other programs to find."""
        _, key = self._keyed(settings)
        return self._read(key, prototype) is not None

    def _explain_image(
        self, members: list[int], settings: Settings, key: str, progress: Progress | None
    ) -> dict[int, SourceSide]:
        """All prototypes that come from one image, in one game."""
        images, index = self.find(members[0])
        pixels = images.image(index)
        image = self._normalized(pixels)
        results = {p: found for p in members if (found := self._read(key, p)) is not None}
        new = [p for p in members if p not in results]
        if new:
            played = play(distances_and_outputs(self.network, new), image, settings, progress=progress)
            self.evaluations += played.evaluations
            results |= {p: self._write(key, p, played.of_outputs([row])) for row, p in enumerate(new)}
        return {
            prototype: SourceSide(
                images.paths[index],
                pixels,
                region_values(results[prototype], 0, -1),
                activation,
                crop_box(activation),
                results[prototype].evaluations,
                results[prototype].precision,
            )
            for prototype, activation in zip(members, self._activations(image, members), strict=True)
        }

    @torch.no_grad()
    def _activations(self, image: Tensor, members: list[int]) -> Tensor:
        maps = self.model.distance_maps(image[None])[0]
        return own_maps(self.model, image, maps, members).cpu()

    def _known_images(self) -> SourceImages:
        if self.images is None:
            raise ProtoPFaithError(
                "A network alone does not know its training images; give a run folder, images=..., or "
                f"{WITHOUT_SOURCES}."
            )
        return self.images

    def _normalized(self, pixels: Tensor) -> Tensor:
        if self.preprocessing is None:
            raise ProtoPFaithError(
                "Source images need the network's preprocessing; give preprocessing=..., or "
                f"{WITHOUT_SOURCES}."
            )
        device = self.model.prototypes.device
        return self.preprocessing.normalize(self.preprocessing.uint8(pixels).to(device))

    def _keyed(self, settings: Settings) -> tuple[Settings, str]:
        """The settings of games on source images, and the name that their results are kept under."""
        if self.preprocessing is not None:
            settings = settings.on(self.model.prototypes.device, self.preprocessing.size)
        # Regions drawn for one image mean nothing on another.
        drawn = isinstance(settings.players, Tensor | Players)
        budget = settings.budget if settings.source_budget is None else settings.source_budget
        settings = replace(settings, players=WINDOW if drawn else settings.players, budget=budget)
        return settings, settings.key(self.weights_hash)

    def _path(self, key: str, prototype: int) -> Path | None:
        return None if self.folder is None else self.folder / key / f"{prototype}.npz"

    def _read(self, key: str, prototype: int) -> Attribution | None:
        path = self._path(key, prototype)
        if path is None or not is_file(path):
            return None
        try:
            return Attribution.load(path)
        except ProtoPFaithError as error:  # a cache may be broken at any time: computed again
            logger.info("%s", error)
            return None

    def _write(self, key: str, prototype: int, result: Attribution) -> Attribution:
        path = self._path(key, prototype)
        if path is not None:
            try:
                result.save(path)
            except ProtoPFaithError as error:  # a run that is read-only: kept in memory alone
                logger.info("%s", error)
        return result


def _cumulative(progress: Progress | None, number: int, games: int) -> Progress | None:
    """Reports of one game among several of about the same length, as reports of all of them."""
    if progress is None:
        return None
    return lambda done, expected: progress(number * expected + done, games * expected)
