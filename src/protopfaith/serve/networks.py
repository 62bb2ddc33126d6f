"""A trained run as the explorer has it: loaded once, with its test images and what it says of them."""

from __future__ import annotations

import io
import threading
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import cast

import torch
from PIL import Image
from torch import Tensor

from protopfaith.crashes import unexpected
from protopfaith.data import ImageData, ImageSet, Record
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.explanation.catalog.nearest import Survey
from protopfaith.explanation.picture import to_pil
from protopfaith.explanation.settings import BaselineLike
from protopfaith.explanation.sources import SourcePart
from protopfaith.network import Outcome, PatchNetwork, outcome_of, probabilities
from protopfaith.serve.pace import Pace
from protopfaith.training.calibration import Calibrator, as_calibrator
from protopfaith.training.reference import rules_of
from protopfaith.training.thresholds import FindingRule

BATCH = 16  # test images that are classified at a time while nobody asks anything
THUMBNAIL = 128  # pixels of the longer side
SOME = 200  # training images whose mean color is taken
Answer = tuple[int, ...]
"""What the network sees in an image: its class, or the findings that are there."""


class Network:
    """One run of the server.

    Args:
        number: how pages name it.
        explainer: the network, loaded.
        name: for people.
    """

    def __init__(self, number: int, explainer: Explainer, name: str):
        self.number, self.explainer, self.name = number, explainer, name
        self.pace = Pace()
        self.survey: Survey | None = None  # of training images, once somebody asked for it
        self.predictions: list[Answer | None] = [None] * len(self.test)
        self.stopped = ""  # why the other test images stay without an answer
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
    def outcome(self) -> Outcome:
        """Whether it decides for "one" class, or on "several" findings."""
        return outcome_of(self.explainer.model)

    @property
    def calibrator(self) -> Calibrator | None:
        return self.explainer.calibrator

    @property
    def rules(self) -> Sequence[FindingRule]:
        """How the probabilities of several findings are read."""
        return rules_of(self.explainer.reference, len(self.class_names))

    @property
    def news(self) -> str:
        """What became of the run on disk since its network was loaded, in a sentence; empty: nothing."""
        now = self._stamp()
        if now == self._loaded:
            return ""
        if now is None:
            return "The run is no longer where it was; its network answers as long as this server runs."
        return "The run was trained again since this page's network was loaded; start the server anew."

    def test_image(self, index: int) -> tuple[Tensor, Record]:
        """The pixels (uint8, C x H x W) of a test image, and what is known of it."""
        if isinstance(self.test, tuple) or not 0 <= index < len(self.test):
            raise ProtoPFaithError("There is no such test image; choose one of those shown.")
        return self.test.image(index), self.test.records[index]

    def shows(self, index: int) -> tuple[int, ...]:
        """The class of a test image, or the findings that are known to be there."""
        return () if isinstance(self.test, tuple) else self.test.shows(index)

    def is_wrong(self, index: int) -> bool:
        """Whether the network's answer on a test image is known, and wrong: in the class, or in a finding."""
        found = self.predictions[index]
        if found is None or isinstance(self.test, tuple):
            return False
        record = self.test.records[index]
        if self.outcome == "one":
            return found != (record.label,)
        known = enumerate(record.findings)
        return any((truth == 1) != (number in found) for number, truth in known if truth >= 0)

    def names(self, numbers: Sequence[int]) -> str:
        """Of classes or findings."""
        return ", ".join(self.class_names[number] for number in numbers) or "no finding"

    def classify_some(self) -> bool:
        """Classifies a few test images that are not classified yet; whether there are more."""
        try:
            return self._classify_some()
        except ProtoPFaithError as error:
            self.stopped = str(error)
            raise
        except Exception as error:  # pages say so, as they would say "being classified" for good
            self.stopped = unexpected(error)
            raise ProtoPFaithError(self.stopped) from error

    def about_rest(self, done: str) -> str:
        """Test images without an answer: that they are being `done`, or why not; empty if there are none."""
        left = self.predictions.count(None)
        is_all = left == len(self.predictions)
        if not left:
            return ""
        if self.stopped:
            return f"{left:,} {'' if is_all else 'other '}test images could not be {done}. {self.stopped}"
        if is_all:
            return f"The {left:,} test images are being {done}; load the page anew in a moment."
        return f"{left:,} more are being {done}; load the page anew."

    def _classify_some(self) -> bool:
        if isinstance(self.test, tuple):
            return False
        todo = [index for index, found in enumerate(self.predictions) if found is None][:BATCH]
        if todo:
            pixels = torch.stack([self.test.image(index) for index in todo])
            preprocessing = self.explainer.preprocessing
            assert preprocessing is not None
            inputs = preprocessing.normalize(preprocessing.uint8(pixels).to(self.explainer.device))
            with torch.no_grad():
                logits = self.explainer.model(inputs).double().cpu()
            for index, row in zip(todo, logits, strict=True):
                self.predictions[index] = self._answer(row)
        return None in self.predictions

    def _answer(self, logits: Tensor) -> Answer:
        if self.outcome == "one":
            return (int(logits.argmax()),)
        p = probabilities(as_calibrator(self.calibrator)(logits), "several").tolist()
        rules = enumerate(zip(p, self.rules, strict=True))
        return tuple(number for number, (one, rule) in rules if one >= rule.threshold)

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

    def _patch(self, prototype: int) -> SourcePart | None:
        try:
            return self.explainer.sources.part(prototype)
        except ProtoPFaithError:  # all images are gone
            return None

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
        except OSError:  # gone, or being replaced just now
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
