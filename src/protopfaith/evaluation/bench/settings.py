"""What decides the results, besides the network and its images."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import Options
from protopfaith.shapley import Players

TRUTH = "truth"
"""The name of the true values where explainers have theirs."""
COSTS_ONLY = ("memory", "batch_size", "moment_batch")  # of the options: they decide time, not results
REVISIONS = {"owen": 2, "ours": 4}
"""Explainers that no longer compute what they did; counted up, theirs alone is computed anew."""
USUAL = {
    "cpu": {"steps": 50, "budget": 1024, "truth_budget": 4096, "sizes": 4, "checked": 2},
    "gpu": {"steps": 100, "budget": 12_288, "truth_budget": 65536, "sizes": 8, "checked": 8},
}


@dataclass(frozen=True)
class BenchSettings:
    """How explainers work and on how much they are judged.

    Args:
        options: how explainers work
        steps: of removal curves
        truth_budget: evaluations for the true values of one image; 0 for none
        checked: images for axioms and sanity checks
        quantus: whether Quantus's metrics are measured, too
        limits: prototypes at most, for explainers (or the truth) that cost too much on all
        mean_color: of the training images
    """

    options: Options
    steps: int
    truth_budget: int
    checked: int
    quantus: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    mean_color: tuple[float, ...] = ()

    def of_explainer(self, name: str) -> dict[str, Any]:
        """The settings that decide an explanation."""
        kept = asdict(self.options)
        players = kept.pop("players")["labels"].numpy().tobytes()
        for name_of_cost in COSTS_ONLY:
            kept.pop(name_of_cost)
        if name in REVISIONS:
            kept["revision"] = REVISIONS[name]
        return {"explainer": name, "players": hashlib.sha256(players).hexdigest(), **kept}


def make_settings(
    size: Sequence[int],
    device: torch.device | str,
    *,
    players: int | None = None,
    steps: int | None = None,
    budget: int | None = None,
    truth_budget: int | None = None,
    sizes: int | None = None,
    checked: int | None = None,
    limits: Mapping[str, int] | None = None,
    quantus: bool = False,
    **options: Any,
) -> BenchSettings:
    """For images of a size (H, W); what is None is as usual on the device, `options` are further ones of
    `Options`."""
    usual = USUAL["cpu" if torch.device(device).type == "cpu" else "gpu"]

    def number(name: str, given: int | None) -> int:
        return usual[name] if given is None else given

    return BenchSettings(
        Options(
            _windows(size, players), budget=number("budget", budget), sizes=number("sizes", sizes), **options
        ),
        steps=number("steps", steps),
        truth_budget=number("truth_budget", truth_budget),
        checked=number("checked", checked),
        quantus=quantus,
        limits=dict(limits or {}),
    )


def _windows(size: Sequence[int], side: int | None) -> Players:
    if side is not None and not isinstance(side, int):
        raise ProtoPFaithError(
            "Explainers are judged on square windows, the same on all images: give their side in pixels as "
            f"players, not {side!r}."
        )
    players = Players.windows(size, default_window(size) if side is None else side)
    if len(players) == 1:
        raise ProtoPFaithError(
            f"Windows of {side} pixels cover the whole image ({size[0]}x{size[1]}), so there is one player "
            "and nothing to order; give a smaller side as players."
        )
    return players


def default_window(size: Sequence[int]) -> int:
    """The side of the windows that are players: 16 pixels, or an eighth of a small image's (H, W).

    >>> default_window((224, 224)), default_window((96, 128))
    (16, 12)
    """
    side = min(size)
    return 16 if side >= 160 else max(side // 8, 1)
