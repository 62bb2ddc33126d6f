"""How logits are calibrated: divided by a temperature and, of several findings, each with its own offset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

TEMPERATURES = (0.05, 50.0)
SPREADS = (0.5, 2.0)  # standard deviations of what is expected: of log temperatures, and of offsets


@dataclass(frozen=True)
class Calibrator:
    """What is done to logits before they become probabilities: divided by temperatures, plus offsets.

    Args:
        temperatures: one for all classes, or one for each finding
        offsets: likewise

    >>> import torch
    >>> Calibrator((2.0, 4.0), (0.0, -1.0))(torch.tensor([[2.0, 2.0]])).tolist()
    [[1.0, -0.5]]
    """

    temperatures: tuple[float, ...] = (1.0,)
    offsets: tuple[float, ...] = (0.0,)

    def __call__(self, logits: Tensor) -> Tensor:
        """Logits (..., C) to calibrated ones."""
        return logits / logits.new_tensor(self.temperatures) + logits.new_tensor(self.offsets)

    def temperature(self, number: int) -> float:
        """Of a class or finding."""
        return self.temperatures[number if len(self.temperatures) > 1 else 0]

    def offset(self, number: int) -> float:
        """Of a class or finding."""
        return self.offsets[number if len(self.offsets) > 1 else 0]


UNCALIBRATED = Calibrator()


def as_calibrator(given: Calibrator | float | None) -> Calibrator:
    """One temperature for all classes as a calibrator; None leaves logits as they are.

    >>> as_calibrator(2.0).temperature(3)
    2.0
    """
    if isinstance(given, Calibrator):
        return given
    return UNCALIBRATED if given is None else Calibrator((float(given),))


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The T for which softmax(logits / T) is most likely, given what the images are (Guo et al., 2017).

    The least sure image counts a second time, as one that was taken for its second class: a network without
    any mistake among few images does not become infinitely sure.

    Args:
        logits: (n, C).
        labels: (n,).

    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> fit_temperature(logits, torch.tensor([0, 0, 1, 1])) > 2  # right in three of four cases, not in 98%
    True
    """
    from scipy.optimize import minimize_scalar

    logits = logits.double()
    if labels.dim() == 2:  # findings: as two classes, presence and absence, of every known label
        known = ~labels.isnan()
        if not bool(known.any()):
            return 1.0
        odds = logits[known]
        logits, labels = torch.stack([torch.zeros_like(odds), odds], dim=1), labels[known].long()
    first, second = logits.topk(2, dim=1).values.T
    least = int((first - second).argmin())
    images = torch.cat([torch.arange(len(labels)), torch.tensor([least])])
    believed = torch.cat([labels, logits[least].topk(2).indices[1:]])

    def loss(log_t: float) -> float:
        return -float((logits / math.exp(log_t)).log_softmax(1)[images, believed].mean())

    bounds = (math.log(TEMPERATURES[0]), math.log(TEMPERATURES[1]))
    return float(math.exp(minimize_scalar(loss, bounds=bounds, args=(), method="bounded").x))


def fit_calibrator(logits: Tensor, labels: Tensor, temperature: float) -> Calibrator:
    """A temperature and an offset for each finding, by logistic regression (Platt, 1999).

    Few images say little, and findings that are never confused nothing at all of how sure to be. So each
    temperature is expected to be within a factor of about two of the common one and each offset not far from
    zero (normal priors), as far as the images do not say otherwise.

    Args:
        logits: of the findings of validation images, (n, C)
        labels: 1, 0 or not-a-number where it is not known, (n, C)
        temperature: of all findings together

    >>> import torch
    >>> logits = torch.linspace(-4, 4, 41)[:, None]
    >>> found = fit_calibrator(logits, (logits > 2).float(), temperature=1.0)
    >>> found.offsets[0] < 0  # it is rarer than the logits say
    True
    """
    pairs = [_fit(x, y, temperature) for x, y in zip(logits.double().T, labels.double().T, strict=True)]
    return Calibrator(tuple(t for t, _ in pairs), tuple(b for _, b in pairs))


def _fit(logits: Tensor, labels: Tensor, temperature: float) -> tuple[float, float]:
    """Temperature and offset of one finding: the most probable ones."""
    from scipy.optimize import minimize

    known = ~labels.isnan()
    x, there = logits[known] / temperature, labels[known]

    def loss(at: np.ndarray) -> tuple[float, list[float]]:
        """Of minus the logarithm of T by the common one, and the offset; with its gradient."""
        scaled = x * math.exp(at[0])
        error = (scaled + at[1]).sigmoid() - there
        value = binary_cross_entropy_with_logits(scaled + at[1], there, reduction="sum")
        prior = [one / spread**2 for one, spread in zip(at, SPREADS, strict=True)]
        slopes = [float((error * scaled).sum()) + prior[0], float(error.sum()) + prior[1]]
        return float(value) + 0.5 * sum(one * p for one, p in zip(at, prior, strict=True)), slopes

    common = math.log(temperature)
    bounds = [(common - math.log(TEMPERATURES[1]), common - math.log(TEMPERATURES[0])), (-30.0, 30.0)]
    best = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(temperature * math.exp(-best[0])), float(best[1])


def calibrator_to_json(calibrator: Calibrator | None) -> dict[str, Any] | None:
    """Plain values."""
    if calibrator is None:
        return None
    return {"temperatures": list(calibrator.temperatures), "offsets": list(calibrator.offsets)}


def calibrator_from_json(values: Any) -> Calibrator | None:
    """What `calibrator_to_json` gave; raises ValueError, KeyError or TypeError for anything else."""
    if values is None:
        return None
    temperatures = tuple(float(value) for value in values["temperatures"])
    offsets = tuple(float(value) for value in values["offsets"])
    numbers = [*temperatures, *offsets]
    if len(temperatures) != len(offsets) or not all(map(math.isfinite, numbers)) or min(temperatures) <= 0:
        raise ValueError("temperatures and offsets do not match")
    return Calibrator(temperatures, offsets)
