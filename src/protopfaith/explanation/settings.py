"""How a game is played: its players, estimator, budget and number format."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from protopfaith.devices import choose_autocast
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import ESTIMATORS, Players, Traits
from protopfaith.shapley.estimation import DEFAULT_METHOD, check_plan

# Evaluations for a map where neither a budget nor a precision is given. A GPU makes thousands in a second, so
# there a more precise map costs little patience.
USUAL_BUDGET = {"cpu": 4_096, "gpu": 12_288}
COARSE = 7  # rows and columns of windows in the first, quick answer
# Options for an estimate in several sittings: half of one is no map.
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

PlayersLike = int | str | Tensor | Players
BaselineLike = str | float | Sequence[float] | Tensor


@dataclass(frozen=True)
class Settings:
    """How a game is played; two explanations with equal settings are comparable.

    Estimators that need full precision, such as moment propagation, have no `autocast`, whatever is given.
    """

    players: PlayersLike = 16
    precision: float | None = None
    budget: int | None = None
    estimator: str = "default"
    baseline: BaselineLike = "zero"
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    batch_size: int | None = None
    memory: int | None = None
    autocast: torch.dtype | None = None

    def __post_init__(self) -> None:
        check_plan(self.budget, self.precision)
        if self.traits.full_precision:  # here, so that no game, and no record of one, says otherwise
            object.__setattr__(self, "autocast", None)
        for option in self.options:
            if option in IN_PARTS:
                raise ProtoPFaithError(
                    f"An explanation is made in one go, so its estimator takes no option {option!r}; leave "
                    "it out, or work in parts with protopfaith.shapley.estimate."
                )
            if option in ITS_OWN:
                raise ProtoPFaithError(
                    f"An explanation tells its estimator {option!r} itself, so it is none of the options; "
                    f"give it as {ITS_OWN[option]}=... beside them."
                )

    @property
    def method(self) -> str:
        return DEFAULT_METHOD if self.estimator == "default" else self.estimator

    @property
    def traits(self) -> Traits:
        """What the estimator says about itself."""
        return ESTIMATORS.traits(self.method)

    @property
    def shown_alone(self) -> bool:
        """Whether only the outputs that are shown are computed, since each one costs."""
        return self.traits.per_output

    def key(self, *more: str) -> str:
        """A short name that changes with whatever changes the result."""
        kept = {
            k: v for k, v in asdict(self).items() if k not in ("batch_size", "memory", "players", "estimator")
        }
        kept |= {"players": players_name(self.players), "method": self.method, "more": more}
        return hashlib.sha256(json.dumps(kept, sort_keys=True, default=plain).encode()).hexdigest()[:16]


def usual_budget(device: torch.device | str) -> int:
    """What `USUAL_BUDGET` has for a device: any but the CPU counts as a GPU.

    >>> usual_budget("cuda:1") == USUAL_BUDGET["gpu"], usual_budget("cpu") == USUAL_BUDGET["cpu"]
    (True, True)
    """
    return USUAL_BUDGET["cpu" if torch.device(device).type == "cpu" else "gpu"]


def with_budget(settings: Settings, device: torch.device | str) -> Settings:
    """Settings with the device's usual budget, unless they say themselves when to stop."""
    if settings.budget is not None or settings.precision is not None:
        return settings
    return replace(settings, budget=usual_budget(device))


def with_autocast(settings: Settings, autocast: torch.dtype | str | None, device: torch.device) -> Settings:
    """Settings with what `autocast` means on the device, see
    `protopfaith.devices.choose_autocast`."""
    return replace(settings, autocast=choose_autocast(autocast, device))


def make_players(spec: PlayersLike, image: Tensor) -> Players:
    """Players of an image (C x H x W): windows of that many pixels, `"superpixels:60"`, or a label
    image."""
    if isinstance(spec, Players):
        return spec
    if isinstance(spec, Tensor):
        return Players.from_labels(spec)
    if isinstance(spec, str) and spec.isdecimal():
        spec = int(spec)
    if isinstance(spec, int):
        return Players.windows(image.shape[-2:], spec)
    kind, _, number = str(spec).partition(":")
    if kind != "superpixels" or not number.isdecimal() or int(number) < 1:
        raise ProtoPFaithError(
            f"The players {spec!r} are not known; give the side of windows in pixels (16), superpixels:60, "
            "or a label image of your own (in Python, H x W, int64)."
        )
    return Players.superpixels(image, int(number))


def players_name(spec: PlayersLike) -> str:
    return plain(spec.labels if isinstance(spec, Players) else spec)


def plain(value: object) -> str:
    """A text that changes with the value: a tensor's own leaves out most of its numbers."""
    if isinstance(value, Tensor):
        return "tensor " + hashlib.sha256(value.cpu().contiguous().numpy().tobytes()).hexdigest()[:16]
    return str(value)


def coarse_players(image: Tensor) -> Players:
    """Seven by seven windows."""
    height, width = image.shape[-2:]
    return Players.windows((height, width), (math.ceil(height / COARSE), math.ceil(width / COARSE)))
