"""A network without some of its prototypes: which may go, and what F makes of those that stay."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from protopfaith.arguments import finite_number, shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PatchNetwork, ProtoPNet, distinct_prototypes, prune
from protopfaith.specs import check_dropped


def without_prototypes(
    model: PatchNetwork, drop: Sequence[int] | None, tolerance: float | None, *, merged: bool = True
) -> tuple[PatchNetwork, tuple[int, ...]]:
    """A copy of a network without some prototypes, and which went.

    Args:
        model: it stays as it is
        drop: indices of those that go; None: all but one of equal ones
        tolerance: squared distance up to which two are equal; None: what rounding leaves of zero
        merged: where F is a sum, one that stays also speaks for its equals that go
    """
    dropped = prototypes_to_drop(model, drop, tolerance)
    kept = [index for index in range(len(model.prototypes)) if index not in dropped]
    pruned = prune(model, kept)
    if merged and isinstance(model, ProtoPNet) and isinstance(pruned, ProtoPNet):
        pruned.classifier.weight.data = _merged_weights(model, kept, tolerance)
    return pruned, dropped


def _merged_weights(model: ProtoPNet, kept: Sequence[int], tolerance: float | None) -> Tensor:
    """F's weights (C, kept): one that stays has those of its equals that go, as their distances are the same.
    So dropping repeats alone changes no logit."""
    weights, staying = model.classifier.weight.detach().clone(), set(kept)
    for group in distinct_prototypes(model, tolerance).groups:
        stay = [index for index in group if index in staying]
        gone = [index for index in group if index not in staying]
        if stay:
            weights[:, stay[0]] += weights[:, gone].sum(1)
    return weights[:, list(kept)]


def prototypes_to_drop(
    model: PatchNetwork, drop: Sequence[int] | None, tolerance: float | None
) -> tuple[int, ...]:
    """The indices of those that go; raises if there are none, or no such ones."""
    if tolerance is not None:
        finite_number(tolerance, "The tolerance", least=0)
    if drop is None:
        dropped = distinct_prototypes(model, tolerance).duplicates
        if not dropped:
            raise ProtoPFaithError(
                "No two prototypes of a class are the same; name those to drop, as in --prototypes 2,9."
            )
        return dropped
    if isinstance(drop, str) or not all(isinstance(index, int) for index in drop):
        raise ProtoPFaithError(f"Prototypes to drop are a list of numbers, not {shown(drop)}.")
    last = len(model.prototypes) - 1
    if not len(drop) or not all(0 <= index <= last for index in drop):
        raise ProtoPFaithError(
            f"Prototypes to drop have indices from 0 to {last}, but got {shown(list(drop))}."
        )
    check_dropped(drop, tolerance)
    return tuple(sorted(drop))
