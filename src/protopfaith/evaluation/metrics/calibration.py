"""Is a network as sure as it is right? Expected calibration error, and what a reliability diagram shows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BINS = 10


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
    counts, confidence, accuracy, error = _binned(logits.double() / (temperature or 1.0), labels, bins)
    raw = error if temperature is None else _binned(logits.double(), labels, bins)[3]
    return Calibration(
        tuple(counts.long().tolist()),
        tuple(confidence.tolist()),
        tuple(accuracy.tolist()),
        error,
        temperature,
        raw,
    )


def _binned(logits: Tensor, labels: Tensor, bins: int) -> tuple[Tensor, Tensor, Tensor, float]:
    """Counts, mean confidence and accuracy (bins,), and the expected calibration error."""
    sure, chosen = logits.softmax(1).max(1)
    right = (chosen == labels).double()
    index = (sure * bins).long().clamp_max(bins - 1)
    zeros = torch.zeros(bins, dtype=torch.float64)
    counts = zeros.index_add(0, index, torch.ones_like(sure))
    confidence = zeros.index_add(0, index, sure) / counts.clamp_min(1)
    accuracy = zeros.index_add(0, index, right) / counts.clamp_min(1)
    error = float((counts * (accuracy - confidence).abs()).sum() / counts.sum())
    return counts, confidence, accuracy, error
