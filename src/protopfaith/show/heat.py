"""What a map shows: which regions are colored, and on which scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protopfaith.explanation.explanation import PrototypeEvidence
from protopfaith.explanation.regions import RegionValues
from protopfaith.shapley.attribution import relative_error

STRONG = 0.5  # of the scale: evidence that is meant to be seen first


def decided(regions: RegionValues) -> Tensor:
    """Which regions are colored, (n,): those whose sign is sure; all of them where errors are not known."""
    if not regions.errors_known:
        return torch.ones(len(regions.values), dtype=torch.bool)
    return ~regions.undecided


def error_of(regions: RegionValues) -> float:
    """The relative error of one map; infinite where errors are not known."""
    return relative_error(regions.values[None], regions.standard_errors[None])


def scale_of(maps: Iterable[RegionValues]) -> float:
    """The largest evidence that is colored, regardless of sign: both ends of the legend that `maps` share."""
    largest = 0.0
    for one in maps:
        flat = one.flat
        sizes = flat.evidence.abs()
        shown = sizes[decided(flat)]
        largest = max(largest, float(shown.max()) if len(shown) else 0.0)
    return largest or 1.0


def ends_of(maps: Sequence[RegionValues]) -> tuple[str, str]:
    """Both ends of the legend that `maps` share, in numbers; empty where nothing is colored."""
    if not any(shown_evidence(one).any() for one in maps):
        return "", ""
    return f"−{scale_of(maps):.3g}", f"+{scale_of(maps):.3g}"


def shown_evidence(regions: RegionValues) -> Tensor:
    """The evidence of every region that is colored, zero elsewhere: (n,), on flat regions."""
    flat = regions.flat
    return torch.where(decided(flat), flat.evidence, torch.zeros_like(flat.evidence))


@dataclass(frozen=True, eq=False)
class Edge:
    """A group of decided regions that a line goes around: those of one sign, strong or weak."""

    sign: int
    strong: bool
    members: np.ndarray  # (n,), bool


def edges(regions: RegionValues, scale: float) -> list[Edge]:
    """Lines around what is decided, weak ones first; none where errors are not known."""
    if not regions.errors_known:
        return []
    evidence = shown_evidence(regions).numpy()
    strong = np.abs(evidence) >= STRONG * scale
    groups = [
        Edge(sign, kind, (sign * evidence > 0) & (strong == kind))
        for kind in (False, True)
        for sign in (-1, 1)
    ]
    return [group for group in groups if group.members.any()]


def speaking(regions: RegionValues, sign: int) -> Tensor:
    """What the colored regions of one sign weigh, (n,); zero for all others."""
    return (sign * shown_evidence(regions)).clamp_min(0)


def maps_of(shown: Sequence[PrototypeEvidence]) -> list[RegionValues]:
    """Every map of prototypes, on the test image and on source images: they share one scale."""
    sources = [one.source_side.regions for one in shown if one.source_side is not None]
    return [one.test for one in shown] + sources


def activation_limits(shown: Sequence[PrototypeEvidence]) -> tuple[float, float]:
    """The range of ProtoPNet's maps."""
    maps = [one.activation for one in shown]
    maps += [one.source_side.activation for one in shown if one.source_side is not None]
    return min(float(m.min()) for m in maps), max(float(m.max()) for m in maps)
