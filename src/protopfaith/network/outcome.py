"""What logits mean: one class of many, or several findings that are there or not."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import plain_tensor
from protopfaith.errors import ProtoPFaithError

Outcome = Literal["one", "several"]


def outcome_of(network: Any) -> Outcome:
    """Whether a network decides for "one" class of many, or on "several" findings, each by itself.

    Args:
        network: any family's; one that does not say decides for one class

    >>> from protopfaith.network import ProtoPNet
    >>> outcome_of(ProtoPNet("small", ["cat", "dog"], 1, 8))
    'one'
    """
    return getattr(network, "outcome", "one")


def probabilities(logits: Tensor, outcome: Outcome = "one") -> Tensor:
    """Of classes, which add up to one, or of findings, each of its own: (..., C) to (..., C).

    Args:
        logits: of classes or findings
        outcome: of the network, see `outcome_of`

    >>> from torch import zeros
    >>> probabilities(zeros(4)).tolist(), probabilities(zeros(2), "several").tolist()
    ([0.25, 0.25, 0.25, 0.25], [0.5, 0.5])
    """
    check_arguments(probabilities, locals())
    plain_tensor(logits, "The logits", "a tensor")
    if not logits.is_floating_point():
        raise ProtoPFaithError(f"The logits must be real numbers, not {logits.dtype}; convert them first.")
    return logits.sigmoid() if outcome == "several" else logits.softmax(-1)
