"""Whether an image looks like anything that the network knows."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor

from protopfaith.explanation.decision import Decision
from protopfaith.network import PrototypeNetwork
from protopfaith.training.reference import Reference


class Familiarity(NamedTuple):
    """How near an image is to the prototypes of its class, and how near others are; None where unknown."""

    nearest: float | None
    usual: float | None


def familiarity(model: PrototypeNetwork, decision: Decision, reference: Reference | None) -> Familiarity:
    """Of the predicted class, or of the finding that is explained.

    Args:
        model: the network that decided
        decision: what it said about the image
        reference: has the distances of validation images, where known
    """
    label = decision.target if decision.outcome == "several" else int(decision.logits.argmax())
    return nearness(model, decision.distances, label, reference)


def nearness(
    model: PrototypeNetwork, distances: Tensor, label: int, reference: Reference | None
) -> Familiarity:
    """Of one class or finding.

    Args:
        model: the network that was asked
        distances: (P,), of the image to all prototypes
        label: the class or finding
        reference: has the distances of validation images, where known
    """
    own = distances[model.prototype_classes.cpu() == label]
    usual = math.nan if reference is None else float(reference.usual_distances[label])
    return Familiarity(float(own.min()) if len(own) else None, None if math.isnan(usual) else usual)


def is_unfamiliar(nearest: float | None, usual: float | None) -> bool | None:
    """Whether the nearest prototype is farther than 99% of the validation images are from theirs; None where
    one of both is not known.

    >>> is_unfamiliar(3.0, 2.0), is_unfamiliar(1.0, 2.0), is_unfamiliar(1.0, None)
    (True, False, None)
    """
    return None if nearest is None or usual is None else nearest > usual
