"""What a result cost and how far off it may be, in the few words that figures, pages and notebooks share."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from protopfaith.shapley import ESTIMATORS
from protopfaith.show.wording.numbers import percent


class Result(Protocol):
    """An explanation or an attribution."""

    @property
    def method(self) -> str: ...

    @property
    def evaluations(self) -> int: ...


def cost(result: Result) -> str:
    """What the estimator counts: evaluations of the network, or passes of its own kind."""
    kind = "evaluations" if ESTIMATORS.traits(result.method).evaluates else "passes"
    return f"{result.evaluations:,} {kind}"


def told_error(standard_errors: Tensor, precision: float) -> str:
    """The relative error of a result, `precision`; unknown where the estimator knows no standard errors,
    whatever it calls its precision."""
    return percent(precision) if bool(torch.isfinite(standard_errors).all()) else "unknown"
