"""Values of image regions with their errors: what a heat map shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.correlation import pearson
from protopfaith.shapley import Attribution, Players

UNDECIDED = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class RegionValues:
    """One output of a game: the players' shares in ``total``, with standard errors.

    ``sign`` is -1 where the output is a distance, of which a negative share means similarity, and 1 for a
    logit.
    """

    values: Tensor  # (n,)
    standard_errors: Tensor  # (n,); NaN where the estimator does not know them
    total: float  # value of the whole image minus value of the baseline
    gap: float  # sum of the values minus total, before it was redistributed
    players: Players
    sign: int

    @property
    def evidence(self) -> Tensor:
        """The values with the sign that heat maps show: positive is more similar, or in favor of the
        class."""
        return self.sign * self.values

    @property
    def undecided(self) -> Tensor:
        """Players whose value is within two standard errors of zero: (n,). None where errors are unknown."""
        return self.values.abs() < UNDECIDED * self.standard_errors

    @property
    def errors_known(self) -> bool:
        return bool(torch.isfinite(self.standard_errors).all())

    def map(self, size: Sequence[int] | None = None) -> Tensor:
        """The evidence on its pixels, (H, W); ``size`` (height, width) for the original image's geometry."""
        return self.paint(self.evidence, size)

    def paint(self, values: Tensor, size: Sequence[int] | None = None) -> Tensor:
        """Any values (n,) of the players on their pixels."""
        labels = self.labels
        if size is not None and tuple(size) != tuple(labels.shape):
            # Nearest pixels: a region's value is one number, and stays it in every geometry.
            labels = torch.nn.functional.interpolate(
                labels[None, None].double(), tuple(size), mode="nearest-exact"
            )
            labels = labels[0, 0].long()
        return values[labels]

    @property
    def labels(self) -> Tensor:
        """Each pixel's player, (H, W); where channels are players of their own, those of the first one."""
        return self.players.labels if self.players.labels.dim() == 2 else self.players.labels[0]

    def share_inside(self, mask: Tensor) -> float:
        """The share of the positive evidence that lies on ``mask`` (bool, H x W); NaN without any.

        A region's value is spread evenly over its pixels.
        """
        density = (self.evidence.clamp_min(0) / self.players.sizes)[self.labels]
        total = float(density.sum())
        return float(density[mask].sum()) / total if total > 0 else math.nan


def region_values(attribution: Attribution, output: int, sign: int) -> RegionValues:
    """One output of an attribution."""
    return RegionValues(
        attribution.values[output],
        attribution.standard_errors[output],
        float(attribution.total[output]),
        float(attribution.completeness_gap[output]),
        attribution.players,
        sign,
    )


@dataclass(frozen=True)
class Agreement:
    """How far two maps over the same players agree."""

    correlation: float
    same_sign: float  # share of the players that both maps decide, with equal sign
    compared: int  # how many players both maps decide


def agreement(first: RegionValues, second: RegionValues) -> Agreement:
    """Pearson's correlation, and the signs where both are sure."""
    a, b = first.evidence.double(), second.evidence.double()
    sure = ~(first.undecided | second.undecided)
    same = (a[sure].sign() == b[sure].sign()).double().mean() if bool(sure.any()) else torch.tensor(math.nan)
    return Agreement(float(pearson(a, b)), float(same), int(sure.sum()))
