"""Means of samples, how far they are off, and how far that is to be believed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from protopfaith.constants import constant

NORMAL = 1.959964  # quantile of 95% intervals
ROUNDING = 1e-7  # of an output's largest value
FEWEST = 2.0  # degrees of freedom, below which nothing is known
PRIOR = 4.0  # samples that what all players make likely counts for in the variance of each


@dataclass(frozen=True)
class Noisy:
    """Unbiased values, the variances of their errors, the variances of these variances: `(outputs, n)`."""

    values: Tensor
    variances: Tensor
    doubts: Tensor

    @staticmethod
    def from_samples(residuals: Tensor, weights: Tensor) -> Noisy:
        """Means over samples of residuals (m, outputs) times weights (m, n)."""
        sums, squares, fourths = (r.T @ w for r, w in powers(residuals, weights))
        return Noisy.from_sums(sums, squares, fourths, float(len(residuals)))

    @staticmethod
    def without_each(residuals: Tensor, weights: Tensor, folds: int) -> Noisy:
        """The same without each of the folds, `(folds, outputs, n)`: that of sample k is number k % folds."""
        pairs = powers(residuals, weights)
        own = [torch.stack([r[k::folds].T @ w[k::folds] for k in range(folds)]) for r, w in pairs]
        counts = [float(len(range(k, len(residuals), folds))) for k in range(folds)]
        others = constant(tuple(len(residuals) - count for count in counts), own[0].dtype, own[0].device)
        sums, squares, fourths = (some.sum(0) - some for some in own)
        return Noisy.from_sums(sums, squares, fourths, others[:, None, None])

    @staticmethod
    def from_sums(sums: Tensor, squares: Tensor, fourths: Tensor, count: Tensor | float) -> Noisy:
        """Means of `count` samples, from the sums of these, of their squares and of their fourth powers."""
        mean, square, fourth = sums / count, squares / count, fourths / count
        variance = (square - mean.square()).clamp_min(0) / (count - 1)
        doubt = (fourth - square.square()).clamp_min(0) / count / (count - 1) ** 2
        return Noisy(mean, variance, doubt)

    def rounded(self) -> Noisy:
        """With room for rounding: where a game is solved, nothing else is left."""
        floor = ROUNDING * self.values.abs().amax(1, keepdim=True)
        return replace(self, variances=self.variances + floor.square())

    def plus(self, known: Tensor) -> Noisy:
        return replace(self, values=self.values + known)

    def widened(self, factor: Tensor) -> Noisy:
        """With variances that are larger by a factor for each output, (outputs,)."""
        factor = factor[:, None]
        return replace(self, variances=factor * self.variances, doubts=factor.square() * self.doubts)

    def combined(self, other: Noisy) -> Noisy:
        """With independent values of the same, weighted by the mean variances of each output."""
        first, second = self.variances.mean(1, keepdim=True), other.variances.mean(1, keepdim=True)
        share = torch.where(first + second > 0, first / (first + second), 1.0)
        return Noisy(
            (1 - share) * self.values + share * other.values,
            (1 - share) ** 2 * self.variances + share**2 * other.variances,
            (1 - share) ** 4 * self.doubts + share**4 * other.doubts,
        )

    def noise(self) -> Tensor:
        """Variances of normal errors that are as large as these may be.

        Each variance is noisy itself, so it is drawn half way to the mean over the players. And where few
        samples make most of a variance, others like them may have been missed: it is raised until normal
        intervals are as wide as Student's.
        """
        pooled = (self.variances + self.variances.mean(1, keepdim=True)) / 2
        return pooled * self._widening()

    def moderated(self, likely: Tensor | None = None, most: float = math.inf) -> Tensor:
        """Each player's variance as if `PRIOR` more samples had shown the `likely` one, by default the mean
        over the players, raised in the same way: from `most` degrees of freedom to those that there are.

        Where few samples make most of the variances these have few degrees of freedom. A single player's own
        samples may hold none of those few; so all players tell it together.
        """
        likely = self.variances.mean(1, keepdim=True) if likely is None else likely
        few = 2 * self.variances.square().sum(1, keepdim=True) / self.doubts.sum(1, keepdim=True)
        degrees = few.nan_to_num(math.inf, posinf=math.inf).clamp(min(FEWEST, most), most)
        drawn = torch.lerp(likely, self.variances, 1 / (1 + PRIOR / degrees))
        return drawn * (student(degrees) / student(torch.full_like(degrees, most))).square()

    def _widening(self) -> Tensor:
        """By how much normal intervals are too narrow, as a square."""
        doubt = self.doubts / self.variances.square().clamp_min(1e-300)
        degrees = (2 / doubt.clamp_min(1e-9)).clamp_min(FEWEST)
        return (student(degrees) / NORMAL).square()

    def above_average(self) -> Tensor:
        """How many times larger a player's own variance is than what `noise` draws it to; at least one."""
        pooled = (self.variances + self.variances.mean(1, keepdim=True)) / 2
        return (self.variances / pooled.clamp_min(1e-300)).clamp_min(1)


def powers(residuals: Tensor, weights: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Residuals (m, outputs) and weights (m, n), their squares and their fourth powers."""
    square, weight = residuals.square(), weights.square()
    return [(residuals, weights), (square, weight), (square.square(), weight.square())]


def student(degrees: Tensor) -> Tensor:
    """Quantile of 95% intervals of Student's distribution, by the expansion of Cornish and Fisher."""
    z = NORMAL
    return (
        z
        + (z**3 + z) / 4 / degrees
        + (5 * z**5 + 16 * z**3 + 3 * z) / 96 / degrees**2
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / degrees**3
    )
