"""Where in an image something lies, in words that follow what is colored there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.explanation.regions import RegionValues
from protopfaith.show.heat import speaking

ENOUGH = 0.8  # of the colored evidence: so much lies in the part of the image that is named
AROUND = 0.4  # of the colored evidence: where less lies around its strongest region, that is not named
SCATTERED = "in many places"
Span = tuple[float, float]
START, HALF, END, ALL = (0.0, 0.5), (0.25, 0.75), (0.5, 1.0), (0.0, 1.0)


@dataclass(frozen=True)
class Part:
    """A part of an image that has a name: its rows and columns, in shares of height and width.

    >>> Part("in the upper half", START, ALL).area
    0.5
    """

    words: str
    rows: Span
    columns: Span

    @property
    def area(self) -> float:
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])

    @property
    def middle(self) -> Tensor:
        return torch.tensor([sum(self.rows) / 2, sum(self.columns) / 2], dtype=torch.float64)


PARTS = (
    Part("in the center", (1 / 3, 2 / 3), (1 / 3, 2 / 3)),
    Part("in the upper left", START, START),
    Part("in the upper middle", START, HALF),
    Part("in the upper right", START, END),
    Part("in the middle left", HALF, START),
    Part("in the middle right", HALF, END),
    Part("in the lower left", END, START),
    Part("in the lower middle", END, HALF),
    Part("in the lower right", END, END),
    Part("in the middle", (0.2, 0.8), (0.2, 0.8)),
    Part("in the upper half", START, ALL),
    Part("in the lower half", END, ALL),
    Part("in the left half", ALL, START),
    Part("in the right half", ALL, END),
)


def place_for(regions: RegionValues, sign: int = 1) -> str | None:
    """Where the regions lie that are colored as speaking for (`sign=-1`: against); None where none is."""
    weights = speaking(regions, sign).double()
    if not bool(weights.any()):
        return None
    part = part_of(_of_pixels(regions, weights))
    return SCATTERED if part is None else part.words


def strongest_for(regions: RegionValues, sign: int = 1) -> str | None:
    """The same of the strongest of these regions; None where none is, where it fills the image, or where most
    of the others lie elsewhere."""
    weights = speaking(regions, sign).double()
    if not bool(weights.any()):
        return None
    part = part_of(_of_pixels(regions, weights * (weights == weights.max())))
    around = 0.0 if part is None else share_in(part, _of_pixels(regions, weights))
    return None if part is None or around < AROUND else part.words


def _of_pixels(regions: RegionValues, weights: Tensor) -> Tensor:
    """The weights of regions (n,) as those of pixels (H, W)."""
    labels = regions.flat.players.labels
    pixels = torch.bincount(labels.flatten(), minlength=len(weights)).clamp_min(1)
    return (weights / pixels)[labels]


def lies(regions: RegionValues, sign: int = 1) -> str | None:
    """The same as the end of a sentence; None where no region is colored."""
    place, strongest = place_for(regions, sign), strongest_for(regions, sign)
    if place is None:
        return None
    if place != SCATTERED:
        return f"lies mostly {place} of the image"
    return f"lies {place} of the image" + ("" if strongest is None else f", strongest {strongest}")


def part_of(weights: Tensor) -> Part | None:
    """The smallest part of the image that has enough of the pixels' weights (H, W), the one around them
    where several are as small; None where no part has.

    >>> weights = torch.zeros(6, 6)
    >>> weights[5, 0] = 1
    >>> part_of(weights).words
    'in the lower left'
    """
    whole = float(weights.sum())
    able = [part for part in PARTS if share_in(part, weights) >= ENOUGH]
    rows, columns = (_centers(count) for count in weights.shape)
    middle = torch.stack([weights.double().sum(1) @ rows, weights.double().sum(0) @ columns]) / whole
    return min(able, key=lambda part: (part.area, float((part.middle - middle).norm())), default=None)


def share_in(part: Part, weights: Tensor) -> float:
    """How much of the pixels' weights (H, W) lies in a part of the image."""
    rows, columns = (
        _cover(span, count) for span, count in zip((part.rows, part.columns), weights.shape, strict=True)
    )
    return float(rows @ weights.double() @ columns) / float(weights.sum())


def _cover(span: Span, count: int) -> Tensor:
    """How much of each of `count` pixels in a row lies within a span of its length."""
    edges = torch.arange(count + 1, dtype=torch.float64).clamp(span[0] * count, span[1] * count)
    return edges.diff()


def _centers(count: int) -> Tensor:
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count
