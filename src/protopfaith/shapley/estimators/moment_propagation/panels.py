"""Where a jagged curve must be looked at closely: panels that grow small where it bends.

Values along a path are cheap, its derivatives by every player are not. So panels are found by values alone,
before any derivative is taken: a panel is fine enough once the parabola through its ends and its middle
meets the curve at its quarters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Curve = Callable[[np.ndarray], Tensor]
"""Values (m, outputs) at m points."""

FIRST = 8  # panels to start with


@dataclass(frozen=True)
class Panel:
    """A part of the path and the curve at its ends, quarters and middle, (5, outputs)."""

    start: float
    end: float
    values: Tensor

    @property
    def bend(self) -> Tensor:
        """How far the curve lies from the parabola at a quarter, (outputs,)."""
        a, first, middle, third, b = self.values
        before = 0.375 * a + 0.75 * middle - 0.125 * b
        after = 0.375 * b + 0.75 * middle - 0.125 * a
        return torch.maximum((first - before).abs(), (third - after).abs())


def find_panels(
    curve: Curve,
    start: float,
    end: float,
    *,
    tolerance: float,
    most: int,
    outputs: Sequence[int] | None = None,
) -> list[Panel]:
    """Panels from `start` to `end`, in order, halved where the curve bends until the root of the sum of
    their squared bends is at most `tolerance` times the range of the curve, for every output that counts
    (`outputs`, all by default), or `most` values are known."""
    grid = np.linspace(start, end, 4 * FIRST + 1)
    values = curve(grid)
    panels = [Panel(grid[4 * k], grid[4 * k + 4], values[4 * k : 4 * k + 5]) for k in range(FIRST)]
    known = len(grid)
    while known < most:
        coarse = _coarse(panels, tolerance, outputs)[: max((most - known) // 4, 1)]
        if not coarse:
            break
        halves = dict(zip(coarse, _halved(curve, [panels[k] for k in coarse]), strict=True))
        known += 4 * len(coarse)
        panels = [part for k, panel in enumerate(panels) for part in halves.get(k, (panel,))]
    return panels


def _coarse(panels: list[Panel], tolerance: float, outputs: Sequence[int] | None) -> list[int]:
    """Which panels have more than their share of the bend, the worst first; none once all is fine."""
    every = torch.cat([panel.values for panel in panels])
    span = (every.amax(0) - every.amin(0)).clamp_min(torch.finfo(every.dtype).tiny)
    bends = torch.stack([panel.bend for panel in panels]) / span  # (panels, outputs)
    bends = bends if outputs is None else bends[:, list(outputs)]
    if float(bends.square().sum(0).sqrt().max()) <= tolerance:
        return []
    worst = bends.amax(1)
    limit = min(tolerance / math.sqrt(len(panels)), 0.999 * float(worst.max()))
    order = worst.argsort(descending=True).tolist()
    return [k for k in order if float(worst[k]) > limit]


def _halved(curve: Curve, panels: list[Panel]) -> list[tuple[Panel, Panel]]:
    """Both halves of every panel, at four more values each."""
    places = np.array([[p.start + (p.end - p.start) * k / 8 for k in (1, 3, 5, 7)] for p in panels])
    found = curve(places.reshape(-1)).reshape(len(panels), 4, -1)
    pairs = []
    for panel, new in zip(panels, found, strict=True):
        old, middle = panel.values, (panel.start + panel.end) / 2
        left = torch.stack([old[0], new[0], old[1], new[1], old[2]])
        right = torch.stack([old[2], new[2], old[3], new[3], old[4]])
        pairs.append((Panel(panel.start, middle, left), Panel(middle, panel.end, right)))
    return pairs
