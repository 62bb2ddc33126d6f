"""Where in an image something lies, in words."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.explanation.regions import RegionValues
from protopfaith.show.heat import shown_evidence

SPREAD = 0.3  # of the image's sides: evidence that is scattered farther has no place
ROWS = ("upper", "", "lower")
COLUMNS = ("left", "middle", "right")
MIDDLE = (0.4, 0.6)  # of a side: people call less the middle than a third of it


def place_for(regions: RegionValues, sign: int = 1) -> str | None:
    """Where the decided evidence for (`sign=-1`: against) lies; None where there is none."""
    flat = regions.flat
    weights = (sign * shown_evidence(regions)).clamp_min(0)
    if not bool(weights.any()):
        return None
    centers = flat.players.centers[:, 1:].double() + 0.5
    return place_of(centers / torch.tensor(flat.players.labels.shape[-2:]), weights)


def place_of(points: Tensor, weights: Tensor) -> str:
    """The place of weighted points (n, 2), in shares of height and width.

    >>> place_of(torch.tensor([[0.9, 0.1]]), torch.ones(1))
    'the lower left of this image'
    """
    share = (weights.square() / weights.square().sum()).double()  # what is strongest names the place
    middle = share @ points.double()
    spread = float((share @ (points - middle).square().sum(1)).sqrt())
    if spread > SPREAD:
        return "this image, in many places,"
    row, column = (sum(float(m) > end for end in MIDDLE) for m in middle)
    if row == 1:
        return "the center of this image" if column == 1 else f"the {COLUMNS[column]} of this image"
    return f"the {ROWS[row]} {COLUMNS[column]} of this image"
