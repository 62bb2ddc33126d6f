"""What is said of each finding where a network decides on several: present, absent or uncertain, and why."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.explanation.decision import Decision
from protopfaith.explanation.decomposition import closeness
from protopfaith.explanation.regions import RegionValues
from protopfaith.network import PrototypeNetwork
from protopfaith.training.reference import Reference, rules_of
from protopfaith.training.thresholds import FindingRule

"""How probabilities are read where no thresholds are known."""


@dataclass(frozen=True, eq=False)
class Finding:
    """One finding of an image.

    Args:
        name: of the finding
        probability: that it is there
        verdict: "present", "absent" or "uncertain"
        rule: the thresholds behind that, chosen on validation images
        evidence_for: how much prototypes add to its score, beyond what an average training image gets
        evidence_against: how much they take from it; at most zero
        regions: the regions' shares in its score; None where only the explained finding was computed

    >>> from protopfaith.training.thresholds import HALF
    >>> found = Finding("edema", 0.9, "present", HALF, 1.5, -0.25, None)
    >>> found
    Finding('edema', present, p=0.900)
    """

    name: str
    probability: float
    verdict: str
    rule: FindingRule
    evidence_for: float
    evidence_against: float
    regions: RegionValues | None

    def __repr__(self) -> str:
        return f"Finding({self.name!r}, {self.verdict}, p={self.probability:.3f})"


def findings_of(
    model: PrototypeNetwork,
    decision: Decision,
    reference: Reference | None,
    maps: dict[int, RegionValues],
) -> tuple[Finding, ...]:
    """All findings of an image; none where a network decides for one class.

    Args:
        model: the network that decided
        decision: what it said
        reference: has thresholds and the average training image, where known
        maps: of the findings that were computed, by number
    """
    if decision.outcome != "several":
        return ()
    p = decision.probabilities.tolist()
    found = []
    for number, (name, rule) in enumerate(zip(model.class_names, rules_of(reference, len(p)), strict=True)):
        shares, regions = _shares(model, decision, reference, number), maps.get(number)
        found.append(
            Finding(
                name,
                p[number],
                rule.verdict(p[number]),
                rule,
                float(shares.clamp_min(0).sum()),
                float(shares.clamp_max(0).sum()),
                None if regions is None or bool(regions.values.isnan().any()) else regions,
            )
        )
    return tuple(found)


def _shares(model: PrototypeNetwork, decision: Decision, reference: Reference | None, number: int) -> Tensor:
    """What each prototype of a finding adds to its score, compared with an average training image, or where
    that is not known with the empty score."""
    row = decision.finding_row(model, number)
    means = torch.zeros(len(row)) if reference is None else reference.mean_similarities
    return closeness(model, decision.distances, row, means, number).shares
