"""Games in half precision: when, and how much that changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from protopfaith.devices import choose_autocast
from protopfaith.explanation.playing import MOMENTS, Settings
from protopfaith.shapley.baselines import make_baseline


def with_autocast(settings: Settings, autocast: torch.dtype | str | None, device: torch.device) -> Settings:
    """Settings with what ``autocast`` means (see :func:`protopfaith.devices.choose_autocast`) on the device.

    Variances do not survive half precision, so moment propagation always runs without.
    """
    return replace(
        settings, autocast=None if settings.method in MOMENTS else choose_autocast(autocast, device)
    )


@torch.no_grad()
def rounding(function: Callable[[Tensor], Tensor], image: Tensor, settings: Settings, total: Tensor) -> float:
    """By how much autocast changed the totals (outputs,) of a game, relative to the totals without it; of the
    worst output."""
    baseline, _ = make_baseline(settings.baseline, image)
    whole, nothing = function(torch.stack([image, baseline])).double().cpu()
    exact = whole - nothing
    return float(((total - exact).abs() / exact.abs().clamp_min(1e-30)).max())
