"""A network ready to be explained: its weights, how images are prepared for it, where its prototypes come
from."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.game import Progress, distances_and_logit, play
from protopfaith.explanation.picture import ImageLike, Picture, needed, open_picture
from protopfaith.explanation.protopnet_map import crop_box, protopnet_maps
from protopfaith.explanation.regions import RegionValues, region_values
from protopfaith.explanation.settings import Settings, with_budget
from protopfaith.explanation.sources import WITHOUT_SOURCES, SourceImages
from protopfaith.network import ProtoPNet, PrototypeSource
from protopfaith.shapley import Attribution, Players
from protopfaith.training import Run


@dataclass(frozen=True, eq=False)
class SourceSide:
    """A prototype on the training image that it is a part of."""

    path: str
    pixels: Tensor  # uint8, C x H x W
    regions: RegionValues
    activation: Tensor  # ProtoPNet's own map, (H, W)
    box: tuple[int, int, int, int]  # of its 95th percentile
    evaluations: int
    precision: float


class Explainer:
    """Holds what several explanations of one network share.

    `model` is a run, its folder, or a network. A network alone needs `preprocessing` for images that
    are not normalized tensors, and `images` (the training images) to show where prototypes come from; a
    run knows both, and `root` says where its images lie now if they moved as a whole. What is computed
    on source images is kept in memory and, for a run, in its folder.
    """

    def __init__(
        self,
        model: ProtoPNet | Run | Path | str,
        *,
        preprocessing: Preprocessing | None = None,
        images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
        root: Path | str | None = None,
        device: torch.device | str | None = None,
    ):
        self.run = Run(model) if isinstance(model, str | Path) else model if isinstance(model, Run) else None
        # Channels last: the same numbers, a third faster on CPUs and a quarter on GPUs.
        network = self.run.model().to(memory_format=torch.channels_last) if self.run is not None else model
        assert isinstance(network, ProtoPNet)
        if network.training:
            network = copy.deepcopy(network).eval()
        self.model = network if device is None else network.to(device)
        if preprocessing is None and self.run is not None:
            preprocessing = self.run.preprocessing()
        self.preprocessing = preprocessing
        self._given, self._root = images, root
        self._kept: dict[tuple[str, int], SourceSide] = {}

    @property
    def device(self) -> torch.device:
        return self.model.prototypes.device

    @cached_property
    def weights_hash(self) -> str:
        """SHA-256 of all weights: the same network gives the same explanations."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @cached_property
    def images(self) -> SourceImages | None:
        """The images among which prototypes have their sources; None where nothing is known of them."""
        if self._given is not None:
            return SourceImages.of(self._given)
        if self.run is None:
            return None
        from protopfaith.training.run import load_recipe_data

        # Not run.data(): whether one of thousands of images changed matters only if it is a source.
        return SourceImages.of(load_recipe_data(self.run.recipe(), self._root or self.run.root))

    def open(self, image: ImageLike, name: str = "") -> Picture:
        return open_picture(image, self.preprocessing, self.model, name)

    def source(self, prototype: int) -> PrototypeSource:
        """Where a prototype comes from; an error for one that was never projected."""
        source = self.model.sources[prototype]
        if source is None:
            name = self.model.class_names[int(self.model.prototype_classes[prototype])]
            raise ProtoPFaithError(
                f"Prototype {prototype} ({name}) has no source image because the network's prototypes were "
                f"not projected; train it through a projection, or {WITHOUT_SOURCES}."
            )
        return source

    def find_source(self, prototype: int) -> tuple[ImageSet, int]:
        """The set and index of a prototype's source image; an error where it is unknown, changed or gone."""
        source = self.source(prototype)
        return self._known_images().find(source, prototype)

    def check_sources(self) -> None:
        """An error where no source can be shown, whatever the prototype."""
        if not any(self.model.sources):
            self.source(0)
        self._known_images()

    def blank(self) -> Tensor:
        """An image of zeros, C x H x W, of the size that images are brought to."""
        preprocessing = needed(self.preprocessing)
        return torch.zeros(preprocessing.channels, *preprocessing.size, device=self.device)

    def explain_sources(
        self, prototypes: Sequence[int], settings: Settings, progress: Progress | None = None
    ) -> dict[int, SourceSide]:
        """Each prototype on its source image; computed once, then read from the cache."""
        settings, key = self._for_sources(settings)
        by_image: dict[str, list[int]] = {}
        for prototype in prototypes:
            if (key, prototype) not in self._kept:
                by_image.setdefault(self.source(prototype).sha256, []).append(prototype)
        for members in by_image.values():
            for prototype, side in self._explain_one_source(members, settings, key, progress).items():
                self._kept[key, prototype] = side
        return {p: self._kept[key, p] for p in prototypes}

    def has_sources(self, prototypes: Sequence[int], settings: Settings) -> bool:
        """Whether `explain_sources` would find everything in its cache."""
        _, key = self._for_sources(settings)
        return all((key, p) in self._kept or self._cache(key, p) is not None for p in prototypes)

    def _explain_one_source(
        self, members: list[int], settings: Settings, key: str, progress: Progress | None
    ) -> dict[int, SourceSide]:
        """All prototypes that come from one image, in one game."""
        images, index = self.find_source(members[0])
        path, pixels = images.paths[index], images.image(index)
        image = self._normalized(pixels)
        cached = {p: self._cache(key, p) for p in members}
        new = [p for p in members if cached[p] is None]
        if new:
            found = play(distances_and_logit(self.model, new), image, settings, progress=progress)
            for row, prototype in enumerate(new):
                cached[prototype] = self._keep(key, prototype, _one_output(found, row))
        with torch.no_grad():
            maps = self.model.distance_maps(image[None])[0, members]
        activations = protopnet_maps(self.model, maps, image.shape[-2:]).cpu()
        sides = {}
        for prototype, activation in zip(members, activations, strict=True):
            result = cached[prototype]
            assert result is not None
            sides[prototype] = SourceSide(
                path,
                pixels,
                region_values(result, 0, -1),
                activation,
                crop_box(activation),
                result.evaluations,
                result.precision,
            )
        return sides

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
        return self.preprocessing.normalize(self.preprocessing.uint8(pixels).to(self.device))

    def _for_sources(self, settings: Settings) -> tuple[Settings, str]:
        """The settings of games on source images, and the name that their results are kept under."""
        if isinstance(settings.players, Tensor | Players):
            settings = replace(settings, players=16)  # regions of one image mean nothing on another
        settings = with_budget(settings, self.device)
        return settings, settings.key(self.weights_hash)

    def _path(self, key: str, prototype: int) -> Path | None:
        if self.run is None:
            return None
        return self.run.folder / "explanations" / "sources" / key / f"{prototype}.npz"

    def _cache(self, key: str, prototype: int) -> Attribution | None:
        path = self._path(key, prototype)
        return Attribution.load(path) if path is not None and path.is_file() else None

    def _keep(self, key: str, prototype: int, result: Attribution) -> Attribution:
        path = self._path(key, prototype)
        if path is not None:
            result.save(path)
        return result


def _one_output(result: Attribution, row: int) -> Attribution:
    rows = slice(row, row + 1)
    return replace(
        result,
        values=result.values[rows],
        standard_errors=result.standard_errors[rows],
        completeness_gap=result.completeness_gap[rows],
        total=result.total[rows],
    )
