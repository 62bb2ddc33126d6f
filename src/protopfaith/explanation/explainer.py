"""The way in: a network ready to be explained, and the explanation of one image.

`Explainer.explain` goes through the other files of this folder once: it understands what was asked
(`settings`), opens the image (`picture`), asks the network what it says (`decision`), plays a game on that
(`game`), looks up the prototypes on the images that they come from (`sources`), and puts the result together
(`assembly`).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance
from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.data.registry import check_place
from protopfaith.devices import choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.assembly import assemble
from protopfaith.explanation.cost import has_coarse
from protopfaith.explanation.decision import Decision, decide
from protopfaith.explanation.decomposition import find_class
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.game import Progress, check_game, play_decision
from protopfaith.explanation.picture import (
    ImageLike,
    MaskLike,
    Picture,
    open_mask,
    open_picture,
    require_preprocessing,
)
from protopfaith.explanation.settings import Settings, coarse_players
from protopfaith.explanation.sources import SourceImages, SourcePart, Sources
from protopfaith.listening import STAGES, check_listener
from protopfaith.network import FusedProtoPNet, PrototypeNetwork, check_contract
from protopfaith.progress import Report
from protopfaith.training import Run
from protopfaith.training.calibration import Calibrator
from protopfaith.training.reference import Reference, weights_hash
from protopfaith.training.reference_measurement import measure_and_keep

Explainable = PrototypeNetwork | Run | Path | str


def explain(
    model: Explainable | Explainer,
    image: ImageLike,
    *,
    preprocessing: Preprocessing | None = None,
    images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
    device: torch.device | str | None = None,
    **asked: Any,
) -> Explanation:
    """Explains the decision of a network on one image.

    Args:
        model: a run, its folder, a network, or an `Explainer` (keeps everything loaded between
            images, and has `device`, `preprocessing` and `images` already).
        image: a path, a Pillow image, a uint8 tensor of any size, or a normalized float tensor.
        preprocessing: how images are prepared for a network that comes without a run.
        images: the training images of such a network.
        device: where to compute.
        asked: what `Explainer.explain` takes: `target`, `versus`, and the fields of `Settings`.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 1, 8).eval()
    >>> found = explain(model, torch.zeros(3, 32, 32), target="dog", players=16, sources=False)
    >>> found.class_names[found.target], len(found.class_map.values)
    ('dog', 4)
    """
    check_arguments(explain, locals())
    explainer = as_explainer(model, preprocessing=preprocessing, images=images, device=device)
    return explainer.explain(image, **asked)


class Explainer:
    """Holds what several explanations of one network share.

    What is computed on source images is kept in memory and, for a run, in its folder.

    Args:
        model: a run, its folder, or a network (a ProtoPNet, or another module that keeps the contract of
            `protopfaith.network.PrototypeNetwork`). A network alone needs `preprocessing` for images that are
            not normalized tensors, and `images` to show where prototypes come from; a run knows both.
        preprocessing: how images are prepared for the network.
        images: the training images.
        root: where a run's images are now, if they have moved.
        device: where to compute.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 1, 8).eval()
    >>> Explainer(model)
    Explainer(small, 2 classes, 2 prototypes, cpu)
    """

    def __init__(
        self,
        model: Explainable,
        *,
        preprocessing: Preprocessing | None = None,
        images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
        root: Path | str | None = None,
        device: torch.device | str | None = None,
    ):
        self.run = Run(model) if isinstance(model, str | Path) else model if isinstance(model, Run) else None
        # Channels last: the same numbers, a third faster on CPUs and a quarter on GPUs.
        network = self.run.model().to(memory_format=torch.channels_last) if self.run is not None else model
        instance(network, nn.Module, "What is explained", "a run, its folder, or a ProtoPNet")
        check_contract(network)
        network = cast(PrototypeNetwork, network)
        _check_weights(network)
        if network.training:
            network = copy.deepcopy(network).eval()
        self.model = network if device is None else network.to(choose_device(device))
        self.fused = FusedProtoPNet(self.model)  # what games are played on
        if preprocessing is None and self.run is not None:
            preprocessing = self.run.preprocessing()
        if preprocessing is not None:
            instance(preprocessing, Preprocessing, "The preprocessing", "a Preprocessing")
        if root is not None:
            _check_root(self.run, root)
        _check_images(images)
        self.preprocessing = preprocessing
        self._given, self._root = images, root

    def explain(
        self,
        image: ImageLike,
        *,
        target: str | int | None = None,
        versus: str | int | None = None,
        settings: Settings | None = None,
        name: str = "",
        true_class: str | int | None = None,
        mask: MaskLike | None = None,
        on_coarse: Callable[[Explanation], None] | None = None,
        progress: Report | None = None,
        **keywords: Any,
    ) -> Explanation:
        """Why this class? The explanation of one image.

        Args:
            image: a path, a Pillow image, a uint8 tensor of any size, or a normalized float tensor.
            target: the class to explain, by name or number; the predicted one by default.
            versus: another class: "why the target and not this one?".
            settings: how to compute it.
            name: of the image, for people.
            true_class: what is in the image, where that is known, by name or number; only told, and not of
                several findings.
            mask: where the object is: a file, an image or a tensor (H x W) that is not zero there. The report
                then says how much of the evidence lies outside.
            on_coarse: gets a quick answer on 7 x 7 windows first, if these are larger than the players.
            progress: gets (what is done, evaluations done, evaluations expected).
            keywords: fields of `Settings`, in the place of those of `settings`.

        >>> from protopfaith.network import ProtoPNet
        >>> explainer = Explainer(ProtoPNet("small", ["cat", "dog"], 1, 8).eval())
        >>> found = explainer.explain(torch.zeros(3, 32, 32), budget=128, players=8, sources=False)
        >>> found.evaluations
        128
        """
        check_arguments(Explainer.explain, locals())
        check_listener(progress, STAGES)
        start = time.perf_counter()
        settings = Settings.of(settings, **keywords)
        picture = self.open(image, name)
        size = picture.input.shape[-2:]
        settings = settings.on(self.device, size)
        there = None if mask is None else open_mask(mask, size, picture.original_size)
        with torch.autocast(self.device.type, enabled=False):  # the caller's would make small distances NaN
            decision = decide(
                self.model, picture, target, versus, settings=settings, temperature=self.calibrator
            )
        known: dict[str, Any] = {
            "true_class": None if decision.outcome == "several" else find_class(self.model, true_class),
            "mask": there,
        }
        quick = on_coarse if on_coarse is not None and has_coarse(settings, picture.input) else None
        # What would fail after a part of the work fails before it; a game that is the only one does anyway.
        if quick is not None or settings.second_baseline is not None:
            check_game(settings, picture.input)
        if settings.sources:
            self.sources.check(decision.named)
        if quick is not None:
            quick(replace(self._coarse(decision, settings, progress, start), **known))
        found = replace(self._final(decision, settings, progress, start), **known)
        # For the command that would repeat it; as the image's own path, without the folders of this machine.
        file = Path(mask).name if isinstance(mask, str | Path) else None
        return replace(found, settings={**found.settings, "mask": file})

    def _coarse(
        self, decision: Decision, settings: Settings, progress: Report | None, start: float
    ) -> Explanation:
        """A quick answer on 7 x 7 windows, with the source images if they are known already."""
        players, quick = coarse_players(decision.picture.input), settings.coarse
        told = _told(progress, "coarse answer")
        result = play_decision(self.fused, decision, quick, players=players, progress=told)
        known = settings.sources and self.sources.known(decision.named, settings)
        return assemble(
            self.model,
            decision,
            result,
            quick,
            weights_hash=self.weights_hash,
            reference=self.reference,
            sides=self.sources.explain(decision.named, settings) if known else {},
            parts={} if known else self._parts(decision, shown=settings.sources or settings.source_parts),
            second=None,
            coarse=True,
            seconds=time.perf_counter() - start,
        )

    def _final(
        self, decision: Decision, settings: Settings, progress: Report | None, start: float
    ) -> Explanation:
        """The answer that was asked for: the image's game, again with the second baseline, the sources."""
        result = play_decision(self.fused, decision, settings, progress=_told(progress, "test image"))
        second = None
        if settings.second_baseline is not None:
            other = replace(settings, baseline=settings.second_baseline, second_baseline=None)
            told = _told(progress, "second baseline")
            second = play_decision(self.fused, decision, other, players=result.players, progress=told)
        sides, before = {}, 0
        if settings.sources:
            before = self.sources.evaluations
            sides = self.sources.explain(decision.named, settings, _told(progress, "source images"))
        return assemble(
            self.model,
            decision,
            result,
            settings,
            weights_hash=self.weights_hash,
            reference=self.reference,
            sides=sides,
            parts=self._parts(decision, shown=settings.source_parts and not settings.sources),
            second=second,
            source_evaluations=self.sources.evaluations - before if settings.sources else 0,
            coarse=False,
            seconds=time.perf_counter() - start,
        )

    def _parts(self, decision: Decision, *, shown: bool) -> dict[int, SourcePart]:
        """Of source images that are shown but not explained, as far as they are at hand."""
        if not shown:
            return {}
        try:
            found = {prototype: self.sources.part(prototype) for prototype in decision.named}
        except ProtoPFaithError:  # the whole data set is gone
            return {}
        return {prototype: part for prototype, part in found.items() if part is not None}

    def open(self, image: ImageLike, name: str = "") -> Picture:
        """Reads an image as the network takes it.

        Args:
            image: a path, a Pillow image, a uint8 tensor (C x H x W) or array (H x W x C), or floats, see
                `explain`
            name: for people; the file's by default
        """
        picture = open_picture(image, self.preprocessing, self.model, name)
        return replace(picture, input=picture.input.to(self.model.prototypes.dtype))

    def blank(self) -> Tensor:
        """An image of zeros, C x H x W, of the size that images are brought to."""
        return torch.zeros(require_preprocessing(self.preprocessing).channels, *self.size, device=self.device)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width that images are brought to."""
        return require_preprocessing(self.preprocessing).size

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.model.prototypes.device

    @cached_property
    def weights_hash(self) -> str:
        """SHA-256 of all weights: the same network gives the same explanations."""
        return weights_hash(self.model)

    @cached_property
    def images(self) -> SourceImages | None:
        """The images among which prototypes have their sources; None where nothing is known of them."""
        if self.run is not None and not (
            self._given or self._root or self.run.root or any(self.model.sources)
        ):
            return None  # converted without its images
        return None if self._data is None else SourceImages.of(self._data)

    @cached_property
    def reference(self) -> Reference | None:
        """What an image is compared with: the average training image, usual distances, a temperature. Read
        from the run or measured once; None where the training images are not known."""
        folder = None if self.run is None else self.run.folder
        kept = None if folder is None else Reference.load(folder, self.weights_hash)
        kept = kept if kept is not None and kept.fits(self.model) else None
        if kept is not None:
            return kept
        try:
            data = self._data
        except ProtoPFaithError:  # the images are gone: explained all the same, but not calibrated
            return None
        return measure_and_keep(self.model, data, folder) if isinstance(data, ImageData) else None

    @property
    def calibrator(self) -> Calibrator | None:
        """What makes probabilities of logits honest; None where nothing is known of the training images."""
        return None if self.reference is None else self.reference.calibrator

    @cached_property
    def _data(self) -> ImageData | ImageSet | Sequence[ImageSet] | None:
        if self._given is not None or self.run is None:
            return self._given
        # Not run.data(): whether one of thousands of images changed matters only if it is a source.
        return Run(self.run.folder, self._root or self.run.root).images()

    @cached_property
    def sources(self) -> Sources:
        """The prototypes on the images that they come from."""
        folder = None if self.run is None else self.run.folder / "explanations" / "sources"
        return Sources(self.fused, self.preprocessing, self.images, self.weights_hash, folder)

    def __repr__(self) -> str:
        model = self.model
        what = self.run.folder if self.run is not None else model.encoder_name or "own encoder"
        counts = f"{len(model.class_names)} classes, {len(model.prototypes)} prototypes"
        return f"Explainer({what}, {counts}, {self.device})"


def as_explainer(model: Explainable | Explainer, **options: Any) -> Explainer:
    """The explainer itself, which has its device and images already, or one made with `options`."""
    if not isinstance(model, Explainer):
        return Explainer(model, **options)
    given = [f"{name}=..." for name, value in options.items() if value is not None]
    if given:
        raise ProtoPFaithError(
            f"An Explainer takes {' and '.join(given)} when it is made: give it there, as in "
            f"Explainer(run, {', '.join(given)}), not beside the Explainer."
        )
    return model


def _check_root(run: Run | None, root: Path | str) -> None:
    """Raises if that cannot be the folder of a network's images."""
    if run is None:
        raise ProtoPFaithError(
            "A network without a run does not say what its images are, so a folder tells nothing; give the "
            "images themselves (images=)."
        )
    check_place(run.recipe().data.name, root)


def _check_images(images: object) -> None:
    if images is None:
        return
    several = isinstance(images, Sequence) and not isinstance(images, str | bytes)
    for one in cast(Sequence[Any], images) if several else (images,):
        instance(one, (ImageData, ImageSet), "The images", "an ImageData, an ImageSet or a list of them")


def _check_weights(network: PrototypeNetwork) -> None:
    """Raises if there are no numbers to compute with, or too narrow ones."""
    weights = network.prototypes
    if weights.is_meta:
        raise ProtoPFaithError(
            "The network has weights without numbers (on the device meta); load them first, as with "
            "load_state_dict(..., assign=True)."
        )
    if weights.dtype in (torch.float16, torch.bfloat16):
        raise ProtoPFaithError(
            f"The network's weights are {weights.dtype}, and distances need more digits; give "
            "network.float(), with autocast=... if its encoder is to compute in half precision."
        )


def _told(progress: Report | None, stage: str) -> Progress | None:
    """Reports of one stage."""
    return None if progress is None else lambda done, expected: progress(stage, done, expected)
