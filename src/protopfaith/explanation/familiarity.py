"""Whether an image looks like anything that the network knows."""

from __future__ import annotations

import math
from typing import NamedTuple

from torch import Tensor, tensor

from protopfaith.explanation.decision import Decision
from protopfaith.network import PrototypeNetwork
from protopfaith.training.reference import Reference


class Familiarity(NamedTuple):
    """How far an image is from what the network knows, and how far others are; None where unknown.

    By all of its distances, in standard deviations around the class's training images; in runs of earlier
    versions by its distance to the nearest prototype of the class.
    """

    nearest: float | None
    usual: float | None


def familiarity(model: PrototypeNetwork, decision: Decision, reference: Reference | None) -> Familiarity:
    """Of the predicted class, or of the finding that is explained.

    Args:
        model: the network that decided
        decision: what it said about the image
        reference: what is usual, where known
    """
    label = decision.target if decision.outcome == "several" else int(decision.logits.argmax())
    return nearness(model, decision.distances, decision.traits, label, reference)


def nearness(
    model: PrototypeNetwork, distances: Tensor, found: Tensor, label: int, reference: Reference | None
) -> Familiarity:
    """Of one class or finding.

    Args:
        model: the network that was asked
        distances: (P,), of the image to all prototypes
        found: (F,), its `traits` for this class
        label: the class or finding
        reference: what is usual, where known
    """
    typical = None if reference is None else reference.typical
    if typical is not None and typical.fits(found):
        return Familiarity(float(typical.distances(found[None], tensor([label]))[0]), typical.usual)
    own = distances[model.prototype_classes.cpu() == label]
    usual = math.nan if reference is None else float(reference.usual_distances[label])
    return Familiarity(float(own.min()) if len(own) else None, None if math.isnan(usual) else usual)


def is_unfamiliar(nearest: float | None, usual: float | None) -> bool | None:
    """Whether an image is farther from what the network knows than 99% of the validation images are; None
    where one of both is not known.

    >>> is_unfamiliar(3.0, 2.0), is_unfamiliar(1.0, 2.0), is_unfamiliar(1.0, None)
    (True, False, None)
    """
    return None if nearest is None or usual is None else nearest > usual
