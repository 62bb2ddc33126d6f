"""From which probability a finding counts as present: chosen on validation images, kept with the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from protopfaith.annotations import check_fields
from protopfaith.arguments import finite_number

CAREFUL = 0.95
"""Sensitivity below which nothing is called absent, and specificity below which nothing is called present."""
FEWEST = 2
"""Validation images with a finding, and without it, that a threshold needs."""

Verdict = Literal["present", "absent", "uncertain"]


@dataclass(frozen=True)
class FindingRule:
    """How the probability of one finding is read.

    Args:
        threshold: from here on a finding counts as present, where only present or absent will do: largest sum
            of sensitivity and specificity on validation images
        absent_below: at least 95% of the images with the finding have a larger probability
        present_above: at least 95% of the images without it have a smaller one
        present: validation images with the finding
        absent: and without it

    >>> rule = FindingRule(0.5, 0.4, 0.6, present=50, absent=80)
    >>> [rule.verdict(p) for p in (0.3, 0.45, 0.6)]
    ['absent', 'uncertain', 'present']
    """

    threshold: float
    absent_below: float
    present_above: float
    present: int
    absent: int

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def chosen(self) -> bool:
        """Whether there were enough validation images to choose; otherwise all three are one half."""
        return min(self.present, self.absent) >= FEWEST

    def verdict(self, probability: float) -> Verdict:
        """What a probability says.

        Args:
            probability: of the finding
        """
        probability = finite_number(probability, "A probability", least=0, most=1)
        if probability >= self.present_above:
            return "present"
        return "absent" if probability < self.absent_below else "uncertain"


HALF = FindingRule(0.5, 0.5, 0.5, 0, 0)
"""Where nothing was measured."""


def choose_rules(probabilities: Tensor, labels: Tensor) -> tuple[FindingRule, ...]:
    """A rule for each finding.

    Args:
        probabilities: of validation images, (N, C)
        labels: 1, 0 or not-a-number, (N, C)

    >>> p = torch.tensor([[0.1], [0.2], [0.8], [0.9]])
    >>> round(choose_rules(p, torch.tensor([[0.0], [0.0], [1.0], [1.0]]))[0].threshold, 3)
    0.5
    """
    return tuple(_rule(p.double(), y) for p, y in zip(probabilities.T, labels.T, strict=True))


def _rule(probabilities: Tensor, labels: Tensor) -> FindingRule:
    with_it, without = probabilities[labels == 1], probabilities[labels == 0]
    counts = len(with_it), len(without)
    if min(counts) < FEWEST:
        return FindingRule(0.5, 0.5, 0.5, *counts)
    threshold = _best_threshold(with_it, without)
    low = float(torch.quantile(with_it, 1 - CAREFUL, interpolation="lower"))
    # Not on the value itself: "at least" must not count an image without the finding.
    high = float(
        torch.quantile(without, CAREFUL, interpolation="higher").nextafter(torch.tensor(2.0).double())
    )
    if low >= high:  # well apart: nothing is in doubt
        low = high = threshold
    return FindingRule(min(max(threshold, low), high), low, high, *counts)


def _best_threshold(with_it: Tensor, without: Tensor) -> float:
    """Between two neighboring probabilities, where sensitivity + specificity is largest; of equal ones the
    middle."""
    values = torch.cat([with_it, without]).unique()
    between = torch.cat([values[:1], (values[1:] + values[:-1]) / 2])
    # Counted in sorted values: comparing all with all would take gigabytes for ten thousand images.
    missed = torch.searchsorted(with_it.sort().values, between)
    sensitivity = (len(with_it) - missed).double() / len(with_it)
    specificity = torch.searchsorted(without.sort().values, between).double() / len(without)
    best = (sensitivity + specificity).round(decimals=12)
    places = (best == best.max()).nonzero().flatten()
    return float(between[places[len(places) // 2]])


def rules_to_json(rules: Sequence[FindingRule] | None) -> list[dict[str, Any]] | None:
    """Plain values."""
    return None if rules is None else [asdict(rule) for rule in rules]


def rules_from_json(values: Any) -> tuple[FindingRule, ...] | None:
    """What `rules_to_json` gave; raises ValueError, TypeError or `ProtoPFaithError` for anything else."""
    rules = None if values is None else tuple(FindingRule(**value) for value in values)
    for rule in rules or ():
        ordered = 0 <= rule.absent_below <= rule.threshold <= rule.present_above < 1 + 1e-9
        if not ordered or min(rule.present, rule.absent) < 0:
            raise ValueError("no rule")
    return rules
