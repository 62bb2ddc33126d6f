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
from protopfaith.shapley import Players
from protopfaith.shapley.estimation import DEFAULT_METHOD
from protopfaith.shapley.moment_passes import MOMENTS

COARSE = 7  # rows and columns of windows in the first, quick answer
# A backward pass for each output: these are asked for the outputs that are shown, not for all prototypes.
PER_OUTPUT = ("moment_path",)
# Options for an estimate in several sittings: half of one is no map.
IN_PARTS = ("stop_after", "checkpoint", "resume")

PlayersLike = int | str | Tensor | Players


@dataclass(frozen=True)
class Settings:
    """How a game is played; two explanations with equal settings are comparable."""

    players: PlayersLike = 16
    precision: float | None = None
    budget: int | None = None
    estimator: str = "default"
    baseline: str | float | Sequence[float] | Tensor = "zero"
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    batch_size: int | None = None
    memory: int | None = None
    autocast: torch.dtype | None = None

    def __post_init__(self) -> None:
        for option in IN_PARTS:
            if option in self.options:
                raise ProtoPFaithError(
                    f"An explanation is made in one go, so its estimator takes no option {option!r}; leave "
                    "it out, or work in parts with protopfaith.shapley.estimate."
                )

    @property
    def method(self) -> str:
        return DEFAULT_METHOD if self.estimator == "default" else self.estimator

    @property
    def shown_alone(self) -> bool:
        """Whether only the outputs that are shown are computed, since each one costs."""
        return self.method in PER_OUTPUT

    def key(self, *more: str) -> str:
        """A short name that changes with whatever changes the result."""
        kept = {
            k: v for k, v in asdict(self).items() if k not in ("batch_size", "memory", "players", "estimator")
        }
        kept |= {"players": players_name(self.players), "method": self.method, "more": more}
        return hashlib.sha256(json.dumps(kept, sort_keys=True, default=_plain).encode()).hexdigest()[:16]


def with_autocast(settings: Settings, autocast: torch.dtype | str | None, device: torch.device) -> Settings:
    """Settings with what ``autocast`` means (see :func:`protopfaith.devices.choose_autocast`) on the device.

    Variances do not survive half precision, so moment propagation always runs without.
    """
    dtype = choose_autocast(autocast, device)
    return replace(settings, autocast=None if settings.method in MOMENTS else dtype)


def make_players(spec: PlayersLike, image: Tensor) -> Players:
    """Players of an image (C x H x W): windows of that many pixels, ``"superpixels:60"``, or a label
    image."""
    if isinstance(spec, Players):
        return spec
    if isinstance(spec, Tensor):
        return Players.from_labels(spec)
    if isinstance(spec, str) and spec.isdecimal():
        spec = int(spec)
    if isinstance(spec, int):
        return Players.windows(image.shape[-2:], spec)
    kind, _, number = spec.partition(":")
    if kind != "superpixels" or not number.isdecimal() or int(number) < 1:
        raise ProtoPFaithError(
            f"The players {spec!r} are not known; give the side of windows in pixels (16) or superpixels:60."
        )
    return Players.superpixels(image, int(number))


def players_name(spec: PlayersLike) -> str:
    return _plain(spec.labels if isinstance(spec, Players) else spec)


def _plain(value: object) -> str:
    if isinstance(value, Tensor):
        return "tensor " + hashlib.sha256(value.cpu().contiguous().numpy().tobytes()).hexdigest()[:16]
    return str(value)


def coarse_players(image: Tensor) -> Players:
    """Seven by seven windows."""
    height, width = image.shape[-2:]
    return Players.windows((height, width), (math.ceil(height / COARSE), math.ceil(width / COARSE)))
