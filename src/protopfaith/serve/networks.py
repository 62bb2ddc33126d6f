"""A trained run as the explorer has it: loaded once, with its test images and what it says of them."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import cast

import torch
from PIL import Image
from torch import Tensor

from protopfaith.data import ImageData, ImageSet
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.explanation.catalog.nearest import Survey
from protopfaith.explanation.picture import to_pil
from protopfaith.explanation.protopnet_map import crop_box, own_maps
from protopfaith.explanation.settings import BaselineLike
from protopfaith.network import PatchNetwork

BATCH = 16  # test images that are classified at a time while nobody asks anything
THUMBNAIL = 128  # pixels of the longer side
SOME = 200  # training images whose mean color is taken


@dataclass(frozen=True, eq=False)
class Patch:
    """A prototype's place on its source image."""

    path: str
    pixels: Tensor  # uint8, C x H x W
    box: tuple[int, int, int, int]


class Network:
    """One run of the server.

    Args:
        number: how pages name it.
        explainer: the network, loaded.
        name: for people.
    """

    def __init__(self, number: int, explainer: Explainer, name: str):
        self.number, self.explainer, self.name = number, explainer, name
        self.survey: Survey | None = None  # of training images, once somebody asked for it
        self.predictions: list[int | None] = [None] * len(self.test)
        self._loaded = self._stamp()
        self._lock = threading.Lock()
        self.patch = lru_cache(maxsize=256)(self._patch)
        self.thumbnail = lru_cache(maxsize=2_000)(self._thumbnail)

    @property
    def model(self) -> PatchNetwork:
        """The network itself: what runs hold."""
        return cast(PatchNetwork, self.explainer.model)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.model.class_names

    @cached_property
    def data(self) -> ImageData | None:
        """The run's images; None where they are gone."""
        try:
            found = self.explainer._data
        except ProtoPFaithError:
            return None
        return found if isinstance(found, ImageData) else None

    @property
    def test(self) -> ImageSet | tuple[()]:
        """The run's test images, of which there may be none."""
        return () if self.data is None else self.data.test

    @property
    def temperature(self) -> float | None:
        reference = self.explainer.reference
        return None if reference is None else reference.temperature

    @property
    def is_retrained(self) -> bool:
        """Whether the run's network on disk is another one than that loaded."""
        return self._stamp() != self._loaded

    def test_image(self, index: int) -> tuple[Tensor, int]:
        """The pixels (uint8, C x H x W) and the label of a test image."""
        if isinstance(self.test, tuple) or not 0 <= index < len(self.test):
            raise ProtoPFaithError("There is no such test image; choose one of those shown.")
        return self.test.image(index), self.test.records[index].label

    def classify_some(self) -> bool:
        """Classifies a few test images that are not classified yet; whether there are more."""
        if isinstance(self.test, tuple):
            return False
        todo = [index for index, found in enumerate(self.predictions) if found is None][:BATCH]
        if todo:
            pixels = torch.stack([self.test.image(index) for index in todo])
            preprocessing = self.explainer.preprocessing
            assert preprocessing is not None
            inputs = preprocessing.normalize(preprocessing.uint8(pixels).to(self.explainer.device))
            with torch.no_grad():
                found = self.explainer.model(inputs).argmax(1).tolist()
            for index, label in zip(todo, found, strict=True):
                self.predictions[index] = label
        return None in self.predictions

    def baseline(self, name: str) -> BaselineLike:
        """The baseline of that name; the mean is that of training images."""
        if name != "mean":
            return name
        return self._mean_color

    @cached_property
    def _mean_color(self) -> Tensor:
        preprocessing = self.explainer.preprocessing
        if self.data is None or preprocessing is None:
            raise ProtoPFaithError(
                "The training images are not there, so their mean color is unknown; take another baseline."
            )
        train = self.data.train
        some = range(0, len(train), max(1, len(train) // SOME))
        means = [train.image(index).double().mean((1, 2)) for index in some]
        color = torch.stack(means).mean(0)[:, None, None]
        return preprocessing.normalize(preprocessing_channels(color, preprocessing.channels)).reshape(-1)

    def _patch(self, prototype: int) -> Patch | None:
        sources = self.explainer.sources
        if self.explainer.model.sources[prototype] is None:
            return None
        try:
            images, index = sources.find(prototype)
        except ProtoPFaithError:  # the image is gone
            return None
        pixels = images.image(index)
        preprocessing = self.explainer.preprocessing
        assert preprocessing is not None
        inputs = preprocessing.normalize(preprocessing.uint8(pixels).to(self.explainer.device))
        with torch.no_grad():
            maps = self.explainer.model.distance_maps(inputs[None])[0]
            activation = own_maps(self.explainer.model, inputs, maps, [prototype])[0].cpu()
        return Patch(images.paths[index], pixels, crop_box(activation))

    def _thumbnail(self, index: int) -> bytes:
        image = to_pil(self.test_image(index)[0])
        image.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.LANCZOS)
        return picture_file(image)

    def _stamp(self) -> tuple[int, int] | None:
        run = self.explainer.run
        if run is None:
            return None
        try:
            stat = run.model_path.stat()
        except OSError:  # being replaced just now
            return None
        return stat.st_mtime_ns, stat.st_size


def preprocessing_channels(color: Tensor, channels: int) -> Tensor:
    """A color (C x 1 x 1) with as many channels as the network reads."""
    return color.mean(0, keepdim=True).expand(channels, 1, 1) if len(color) != channels else color


def picture_file(image: Image.Image) -> bytes:
    """A small image as a PNG file."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def run_name(folder: Path) -> str:
    """What a run is called on pages: its folder's name, without the way there."""
    return folder.resolve().name or "run"
