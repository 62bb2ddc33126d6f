"""How an explanation is computed: players, estimator, budget, baseline, number format.

A request is understood once, at the door: `Settings.of` takes what the caller said, `Settings.on` fills in
what the device decides. Everything behind the door gets the result.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.arguments import finite_number, instance, seed_number, shown, whole_number
from protopfaith.devices import as_device, choose_autocast
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import did_you_mean
from protopfaith.shapley import ESTIMATORS, Players, Traits
from protopfaith.shapley.estimation import check_plan
from protopfaith.shapley.players import as_tensor, height_and_width
from protopfaith.specs import (
    CPU_WINDOWS,
    DEFAULT_METHOD,
    FEW_PLAYERS,
    SUPERPIXELS,
    WINDOW,
    check_output,
    parse_players,
)

# Evaluations for a map where neither a budget nor a precision is given. A GPU makes thousands in a second, so
# there a more precise map costs little patience. A CPU makes a dozen: fewer evaluations of larger regions, so
# that an image takes minutes. Fixed numbers, no time limit: results do not depend on how busy a machine is.
USUAL_BUDGET = {"cpu": 1_024, "gpu": 12_288}
USUAL_SOURCE_BUDGET = {"cpu": 512, "gpu": 12_288}
# Where maps are this precise, the rest of the budget is saved: easy images stop early, and hard ones say
# that they are. With very many images more is saved: a relative error of 0.2 is a correlation of about 0.98
# with the true values.
USUAL_PRECISION = 0.1
BULK_PRECISION = 0.2
COARSE = 7  # rows and columns of windows in the first, quick answer
COARSE_BUDGET = 512
# Options for an estimate in several parts: half of one is no map.
IN_PARTS = ("stop_after", "checkpoint", "resume")
# What an explanation gives to every estimator, by the names of its own parameters.
ITS_OWN = {
    "game": "players",
    "method": "estimator",
    "budget": "budget",
    "precision": "precision",
    "seed": "seed",
    "progress": "progress",
    "outputs": "target",
}

PlayersLike = int | str | Tensor | np.ndarray | Players
BaselineLike = str | float | Sequence[float] | Tensor


@dataclass(frozen=True, repr=False)
class Settings:
    """How an explanation is computed; two explanations with equal settings are comparable.

    Args:
        players: the side of square windows in pixels, `"superpixels:60"`, `"coarse"` (about 7 x 7
            windows), a label image (H x W, whole numbers), or `Players`; by default 16 pixels, on a CPU
            larger ones where there would be more than 8 x 8.
        precision: relative standard error at which to stop, for the class's prototypes and the class itself.
        budget: evaluations of the network per game at most. Where neither is given, a game stops at a
            precision of 0.1, or else after 1,024, on a GPU 12,288 evaluations.
        estimator: a name of `protopfaith.shapley.ESTIMATORS`.
        baseline: what stands where a region is absent.
        seed: of all random choices.
        options: the estimator's own.
        batch_size: images per forward pass; without it as many as `memory` allows.
        memory: bytes that one batch may take.
        autocast: runs the games (not the decision itself) in a type such as `torch.bfloat16`, several times
            as fast on a GPU; "auto" does so where the GPU is able to. The explanation says so and by how much
            that changed the totals. Moment propagation needs float32 and never does.
        second_baseline: repeats the game with another baseline and says how far both agree.
        sources: also explain every prototype on its source image.
        duplicate_tolerance: squared distance up to which prototypes count as one (1e-6 times L).
        output: what the map of the class adds up to: `"margin"` (its logit minus the mean of all logits, the
            default), `"logit"`, `"versus"` (minus the logit of the class it is compared with, or else of the
            next one; the default where a class to compare with is given), or `"log_probability"`.
        source_budget: evaluations per source image at most; where neither a budget nor a precision is given
            512, on a GPU 12,288, else the same as for the image.
        source_parts: where sources are not explained, still show the parts of them that prototypes are, as
            far as the images are at hand.

    >>> Settings(players=8, budget=512)
    Settings(players=8, budget=512)
    >>> Settings.of(Settings(), seed=3).on("cpu", (224, 224))
    Settings(players=28, precision=0.1, budget=1024, seed=3, source_budget=512)
    """

    players: PlayersLike | None = None
    precision: float | None = None
    budget: int | None = None
    estimator: str = "default"
    baseline: BaselineLike = "zero"
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    batch_size: int | None = None
    memory: int | None = None
    autocast: torch.dtype | str | None = None
    second_baseline: BaselineLike | None = None
    sources: bool = True
    duplicate_tolerance: float | None = None
    output: str | None = None
    source_budget: int | None = None
    source_parts: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "players", _parsed(self.players))
        instance(self.estimator, str, "The estimator", "the name of one")
        given = {} if self.options is None else self.options
        options = instance(given, Mapping, "Options", "a mapping of names to values")
        object.__setattr__(self, "options", dict(options))
        object.__setattr__(self, "seed", seed_number(self.seed))
        check_plan(self.budget, self.precision)
        for name in ("batch_size", "memory"):  # games refuse what is too small
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), f"The {name}", most=10**15)
        if self.duplicate_tolerance is not None:
            finite_number(self.duplicate_tolerance, "The duplicate_tolerance", least=0)
        check_plan(self.source_budget, None)
        instance(self.sources, bool, "Whether to explain sources", "True or False")
        instance(self.source_parts, bool, "Whether to show parts of sources", "True or False")
        _check_options(self.options)
        if self.output is not None:
            instance(self.output, str, "The output", "the name of one")
        if self.autocast is not None:
            instance(self.autocast, (str, torch.dtype), "Autocast", "a type such as bfloat16, auto or off")
        _check_output(self)
        if self.second_baseline is not None and _same(self.second_baseline, self.baseline):
            raise ProtoPFaithError(
                f"The second baseline is the first one again, {shown(self.baseline)}; give another to "
                "compare with, or leave it out."
            )
        if self.traits.full_precision:  # here, so that no game, and no record of one, says otherwise
            object.__setattr__(self, "autocast", None)

    @staticmethod
    def of(settings: Settings | None = None, **keywords: Any) -> Settings:
        """The given settings, with keywords in the place of theirs.

        Args:
            settings: the usual ones by default
            keywords: fields of `Settings`
        """
        for name in keywords:
            if name not in NAMES:
                raise TypeError(f"There is no setting named {shown(name)}; {did_you_mean(name, NAMES)}")
        if settings is None:
            return Settings(**keywords)
        instance(settings, Settings, "Settings", "made by Settings(...)")
        return replace(settings, **keywords)

    def on(self, device: torch.device | str, size: Sequence[int]) -> Settings:
        """With nothing left open: what the device and the images' size decide is decided.

        Args:
            device: where games are played
            size: height and width of the images
        """
        device, size = as_device(device), height_and_width(size, "The size of images", least=1)
        open_end = self.budget is None and self.precision is None
        source_budget = self.budget if self.source_budget is None else self.source_budget
        return replace(
            self,
            players=_sized(self.players, device, size),
            precision=USUAL_PRECISION if open_end and self.traits.samples else self.precision,
            budget=usual_budget(device) if open_end else self.budget,
            source_budget=_usual(USUAL_SOURCE_BUDGET, device) if open_end else source_budget,
            autocast=choose_autocast(self.autocast, device),
        )

    def made_frugal(self, device: torch.device | str) -> Settings:
        """For very many images: where neither a precision nor a budget was said, they stop earlier than one
        alone would.

        Args:
            device: where to compute

        >>> Settings().made_frugal("cpu"), Settings(budget=512).made_frugal("cpu")
        (Settings(precision=0.2, budget=1024), Settings(budget=512))
        """
        if self.budget is not None or self.precision is not None:
            return self
        return replace(self, precision=BULK_PRECISION, budget=usual_budget(device))

    def made_quick(self) -> Settings:
        """For the impatient: about 7 x 7 regions, 512 evaluations, no maps of source images; what was said
        stays.

        >>> Settings(seed=2).made_quick().on("cpu", (224, 224))
        Settings(players=32, budget=512, seed=2, sources=False, source_budget=512, source_parts=True)
        """
        open_end = self.budget is None and self.precision is None
        return replace(
            self,
            players=FEW_PLAYERS if self.players is None else self.players,
            budget=COARSE_BUDGET if open_end else self.budget,
            sources=False,
            source_parts=self.sources or self.source_parts,  # not where source images are not to be shown
        )

    @property
    def method(self) -> str:
        """The estimator's own name."""
        return DEFAULT_METHOD if self.estimator == "default" else self.estimator

    @property
    def allowed(self) -> int | None:
        """The budget that the estimator is told: none, where it takes as many evaluations as it needs."""
        return self.budget if self.traits.planned else None

    @property
    def traits(self) -> Traits:
        """What the estimator says about itself."""
        return ESTIMATORS.traits(self.method)

    @property
    def coarse(self) -> Settings:
        """Those of the first, coarse answer."""
        return replace(self, precision=None, budget=COARSE_BUDGET, estimator="default", options={})

    def key(self, *more: str) -> str:
        """A short name that changes with whatever changes the values of a game.

        Args:
            more: what else decides the values, such as the network's hash
        """
        decisive = ("precision", "budget", "baseline", "seed", "options", "autocast")
        kept = {name: getattr(self, name) for name in decisive}
        kept |= {"players": players_name(self.players), "method": self.method, "more": more}
        return hashlib.sha256(json.dumps(kept, sort_keys=True, default=stable_text).encode()).hexdigest()[:16]

    def changed(self) -> dict[str, Any]:
        """What differs from the defaults."""
        usual = [(f.name, f.default if f.name != "options" else {}) for f in fields(self)]
        return {
            name: getattr(self, name) for name, default in usual if not _same(getattr(self, name), default)
        }

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={_brief(value)}' for name, value in self.changed().items())})"


NAMES = tuple(one.name for one in fields(Settings))


def usual_budget(device: torch.device | str) -> int:
    """What `USUAL_BUDGET` has for a device: any but the CPU counts as a GPU.

    >>> usual_budget("cuda:1") == USUAL_BUDGET["gpu"], usual_budget("cpu") == USUAL_BUDGET["cpu"]
    (True, True)
    """
    return _usual(USUAL_BUDGET, as_device(device))


def usual_window(device: torch.device | str, size: Sequence[int]) -> int:
    """The side of the windows, in pixels, where none is given.

    >>> usual_window("cuda", (224, 224)), usual_window("cpu", (224, 224)), usual_window("cpu", (96, 96))
    (16, 28, 16)
    """
    if torch.device(device).type != "cpu":
        return WINDOW
    return max(WINDOW, math.ceil(max(size) / CPU_WINDOWS))


def _usual(values: Mapping[str, int], device: torch.device) -> int:
    return values["cpu" if device.type == "cpu" else "gpu"]


def make_players(spec: PlayersLike | None, image: Tensor) -> Players:
    """Players of an image (C x H x W).

    Args:
        spec: as in `Settings`
        image: whose size, and for superpixels whose content, decides

    >>> len(make_players(16, torch.zeros(3, 48, 48)))
    9
    """
    spec = _parsed(spec)
    spec = _sized(spec, image.device, image.shape[-2:])
    if isinstance(spec, Players):
        return spec
    if isinstance(spec, Tensor | np.ndarray):
        return Players.from_labels(as_tensor(spec, "Players", "a label image of H x W whole numbers"))
    if isinstance(spec, int):
        return Players.windows(image.shape[-2:], spec)
    return Players.superpixels(image, int(spec.removeprefix(SUPERPIXELS)))


def coarse_players(image: Tensor) -> Players:
    """Seven by seven windows."""
    height, width = image.shape[-2:]
    return Players.windows((height, width), (math.ceil(height / COARSE), math.ceil(width / COARSE)))


def _sized(spec: PlayersLike | None, device: torch.device, size: Sequence[int]) -> PlayersLike:
    """A specification that does not depend on the device or the image's size any more."""
    if spec is None:
        return usual_window(device, size)
    if isinstance(spec, str) and spec == FEW_PLAYERS:  # never finer than what is usual
        return max(math.ceil(max(size) / COARSE), usual_window(device, size))
    return spec


def _parsed(spec: Any) -> PlayersLike | None:
    """A specification of players that has a meaning."""
    if isinstance(spec, np.ndarray):  # a label image, as scikit-image makes them
        return Players.from_labels(as_tensor(spec, "Players", "a label image of H x W whole numbers"))
    return spec if spec is None or isinstance(spec, Players | Tensor) else parse_players(spec)


def _check_options(options: Mapping[str, Any]) -> None:
    for option in options:
        instance(option, str, "The name of an option", "text")
        if option in IN_PARTS:
            raise ProtoPFaithError(
                f"An explanation is made in one go, so its estimator takes no option {option!r}; leave it "
                "out, or work in parts with protopfaith.shapley.estimate."
            )
        if option in ITS_OWN:
            raise ProtoPFaithError(
                f"An explanation tells its estimator {option!r} itself, so it is none of the options; "
                f"give it as {ITS_OWN[option]}=... beside them."
            )


def _check_output(settings: Settings) -> None:
    if settings.output is not None:
        check_output(settings.output)
    if settings.output == "log_probability" and not settings.traits.evaluates:
        raise ProtoPFaithError(
            f"The estimator {settings.method!r} propagates moments and has no rule for a log probability; "
            "explain the margin or the logit, or take an estimator that samples."
        )


def players_name(spec: PlayersLike | None) -> str:
    """A text that changes with the players."""
    return stable_text(spec.labels if isinstance(spec, Players) else spec)


def stable_text(value: object) -> str:
    """A text that changes with the value: a tensor's own leaves out most of its numbers."""
    if isinstance(value, Tensor):
        return "tensor " + hashlib.sha256(value.cpu().contiguous().numpy().tobytes()).hexdigest()[:16]
    return str(value)


def _same(value: Any, default: Any) -> bool:
    return not isinstance(value, Tensor | Players) and type(value) is type(default) and value == default


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"<tensor {' x '.join(map(str, value.shape))}>"
    return f"<{value.description}>" if isinstance(value, Players) else repr(value)
