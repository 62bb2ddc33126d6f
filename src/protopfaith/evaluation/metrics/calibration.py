"""Is a network as sure as it is right? Expected calibration error, and what a reliability diagram shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

BINS = 10


@dataclass(frozen=True)
class Steps:
    """Images by a probability, in equal steps from 0 to 1.

    Args:
        counts: images in each step.
        probability: their mean probability; 0 in an empty step.
        share: the share of them for which it came true; 0 in an empty step.

    >>> Steps((0, 4), (0.0, 0.75), (0.0, 0.5)).error
    0.25
    """

    counts: tuple[int, ...]
    probability: tuple[float, ...]
    share: tuple[float, ...]

    @property
    def error(self) -> float:
        """The expected calibration error, |share - probability| averaged over images; nan without images."""
        images = sum(self.counts)
        if not images:
            return math.nan
        gaps = zip(self.counts, self.probability, self.share, strict=True)
        return sum(count * abs(share - p) for count, p, share in gaps) / images


def in_steps(probabilities: Tensor, true: Tensor, bins: int = BINS) -> Steps:
    """Sorts images into equal steps of a probability.

    Args:
        probabilities: of something, (N,)
        true: whether it came true, 1 or 0, (N,)
        bins: how many steps

    >>> in_steps(torch.full((4,), 0.75), torch.tensor([1.0, 1.0, 0.0, 0.0]), bins=2)
    Steps(counts=(0, 4), probability=(0.0, 0.75), share=(0.0, 0.5))
    """
    p, true = probabilities.double(), true.double()
    step = (p * bins).long().clamp_max(bins - 1)
    zeros = torch.zeros(bins, dtype=torch.float64)
    counts = zeros.index_add(0, step, torch.ones_like(p))
    means = [zeros.index_add(0, step, values) / counts.clamp_min(1) for values in (p, true)]
    probability, share = (tuple(mean.tolist()) for mean in means)
    return Steps(tuple(counts.long().tolist()), probability, share)


@dataclass(frozen=True)
class Calibration:
    """Images by the probability of the class that the network chose, in equal steps from 0 to 1.

    Args:
        counts: images in each bin.
        confidence: their mean probability; 0 in an empty bin.
        accuracy: the share of them that is right; 0 in an empty bin.
        error: the expected calibration error, |accuracy - confidence| averaged over images.
        temperature: what logits were divided by; None: by nothing.
        raw_error: the error without that.
    """

    counts: tuple[int, ...]
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    error: float
    temperature: float | None
    raw_error: float

    def __str__(self) -> str:
        text = f"Expected calibration error {self.error:.3f}"
        if self.temperature is None:
            return f"{text}; not calibrated"
        return f"{text} at a temperature of {self.temperature:.3g}, {self.raw_error:.3f} without"


def calibration(
    logits: Tensor, labels: Tensor, temperature: float | None = None, *, bins: int = BINS
) -> Calibration:
    """Judges probabilities softmax(logits / temperature).

    Args:
        logits: (n, C).
        labels: (n,).
        temperature: None: the logits as they are.
        bins: steps of the probability.

    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> round(calibration(logits, torch.tensor([0, 0, 1, 1])).error, 3)  # 98% sure, right in 3 of 4 cases
    0.232
    """
    found = _chosen(logits.double() / float(temperature or 1.0), labels, bins)
    raw = found.error if temperature is None else _chosen(logits.double(), labels, bins).error
    return Calibration(found.counts, found.probability, found.share, found.error, temperature, raw)


def _chosen(logits: Tensor, labels: Tensor, bins: int) -> Steps:
    """Images by the probability of the class that is chosen, and whether it is the right one."""
    sure, chosen = logits.softmax(1).max(1)
    return in_steps(sure, chosen == labels, bins)
