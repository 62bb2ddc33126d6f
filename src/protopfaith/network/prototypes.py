"""Which prototypes of a network are the same, and the network without some of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments, check_fields
from protopfaith.arguments import finite_number, instance, shown, tensor, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.contract import NO_CLASS, can_drop
from protopfaith.network.layers import ACTIVATIONS
from protopfaith.network.patches import PatchNetwork


@dataclass(frozen=True)
class DistinctPrototypes:
    """Prototypes of a class that are equal form a group; each group counts once.

    Args:
        groups: indices of prototypes, ordered by their first one; every prototype is in one group
        per_class: the number of groups of each class; zero for all where prototypes belong to none
        total: the number of prototypes

    >>> from protopfaith.network import ProtoPNet
    >>> found = distinct_prototypes(ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2))
    >>> found.per_class, found.fraction, found.duplicates
    ((2, 2), 1.0, ())
    """

    groups: tuple[tuple[int, ...], ...]
    per_class: tuple[int, ...]
    total: int

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"DistinctPrototypes({self.distinct} of {self.total})"

    @property
    def distinct(self) -> int:
        """The number of groups."""
        return len(self.groups)

    @property
    def fraction(self) -> float:
        return self.distinct / self.total

    @property
    def duplicates(self) -> tuple[int, ...]:
        """Every prototype but the first of its group: those that can go without loss."""
        return tuple(sorted(index for group in self.groups for index in group[1:]))


def equality_tolerance(channels: int, activation: str = "relu1") -> float:
    """Squared distance up to which two vectors of L channels are the same: what rounding leaves of zero.

    Args:
        channels: L, the length of the vectors
        activation: that of the network; on the unit sphere distances do not grow with L

    >>> equality_tolerance(128), equality_tolerance(128, "unit")
    (0.000128, 4e-06)
    """
    check_arguments(equality_tolerance, locals())
    whole_number(channels, "The number of channels", least=1)
    if activation not in {*ACTIVATIONS, "none"}:
        raise ACTIVATIONS.unknown(activation, ACTIVATIONS)
    return 4e-6 if activation == "unit" else 1e-6 * channels


def distinct_prototypes(model: PatchNetwork, tolerance: float | None = None) -> DistinctPrototypes:
    """Groups of equal prototypes: of one class and at a squared distance of at most `tolerance` from the
    first of the group (None: `equality_tolerance`; zero: identical vectors).

    Args:
        model: the network
        tolerance: squared distance up to which two prototypes are equal; None is what rounding leaves of zero

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> model.prototypes.data[1] = model.prototypes.data[0]
    >>> distinct_prototypes(model)
    DistinctPrototypes(3 of 4)
    """
    check_arguments(distinct_prototypes, locals())
    instance(model, PatchNetwork, "What has prototypes", "a ProtoPNet")
    usual = equality_tolerance(model.prototypes.shape[1], model.activation)
    tolerance = usual if tolerance is None else finite_number(tolerance, "The tolerance", least=0)
    classes = model.prototype_classes.cpu()
    groups = duplicate_groups(model.prototypes.detach().cpu(), classes, tolerance)
    firsts = classes[[group[0] for group in groups]]
    owned = firsts[firsts != NO_CLASS]
    per_class = torch.bincount(owned, minlength=len(model.class_names)).tolist()
    return DistinctPrototypes(groups, tuple(per_class), len(classes))


def prototype_spread(model: PatchNetwork) -> tuple[float, float]:
    """Median squared distance between two prototypes of one class, and between those of two classes.

    Distinct is not diverse: where the first is a small part of the second, the prototypes of a class stand
    for one thing in several images. NaN where there are no such pairs.

    Args:
        model: the network

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> within, between = prototype_spread(model)
    >>> within > 0 and between > 0
    True
    """
    check_arguments(prototype_spread, locals())
    prototypes, classes = model.prototypes.detach().double().cpu(), model.prototype_classes.cpu()
    first, second = torch.triu_indices(len(classes), len(classes), offset=1)
    distances = torch.pdist(prototypes).square()
    same = classes[first] == classes[second]
    return float(distances[same].median()), float(distances[~same].median())


def duplicate_groups(
    prototypes: Tensor, classes: Tensor, tolerance: float = 0.0
) -> tuple[tuple[int, ...], ...]:
    """The groups of `distinct_prototypes`, from vectors (P, L) and their classes (P).

    Args:
        prototypes: vectors, (P, L)
        classes: of the prototypes, (P,)
        tolerance: squared distance up to which two are equal

    >>> duplicate_groups(torch.tensor([[0.0], [1.0], [0.0], [0.0]]), torch.tensor([0, 0, 0, 1]))
    ((0, 2), (1,), (3,))
    """
    check_arguments(duplicate_groups, locals())
    tensor(prototypes, "Prototypes", "P x L", 2)
    if len(tensor(classes, "Their classes", "one number for each prototype", 1)) != len(prototypes):
        raise ProtoPFaithError(
            f"{len(prototypes)} prototypes need as many classes, not {len(classes)}; give one for each."
        )
    prototypes = prototypes.double() if not prototypes.is_floating_point() else prototypes
    groups: list[tuple[int, ...]] = []
    for label in classes.unique():
        left = torch.where(classes == label)[0]
        while len(left):
            # Differences, not the expanded square: equal vectors must come out at exactly zero.
            same = (prototypes[left] - prototypes[left[0]]).square().sum(1) <= tolerance
            same[0] = True  # also where it is not a number
            groups.append(tuple(left[same].tolist()))
            left = left[~same]
    return tuple(sorted(groups))


def prune(model: PatchNetwork, keep: Tensor | Iterable[int]) -> PatchNetwork:
    """A copy of `model` with the prototypes `keep` alone (P booleans, or indices), in their old order.

    F loses the columns of the others; its remaining weights stay as they are.

    Args:
        model: the network; it stays as it is
        keep: indices of the prototypes to keep, at least one for each class

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> prune(model, [0, 2, 3]).prototype_classes.tolist()
    [0, 1, 1]
    """
    check_arguments(prune, locals())
    if not can_drop(model):
        instead = (
            "prune the leaves of a tree instead (--leaves, or prune_run(..., leaves=0.1))"
            if hasattr(model, "route")
            else "a family whose prototypes can go has a method `keep`"
        )
        raise ProtoPFaithError(
            f"Of a {type(model).__name__} no single prototypes can be dropped, because its outputs are no "
            f"sums over them; {instead}."
        )
    kept = _indices(keep, len(model.prototypes))
    classes = model.prototype_classes[kept]
    emptied = sorted(set(range(len(model.class_names))) - set(classes.tolist()))
    if emptied:
        names = ", ".join(model.class_names[index] for index in emptied)
        raise ProtoPFaithError(
            f"Pruning would leave no prototype for {names}: keep at least one of every class."
        )
    pruned: Any = copy.deepcopy(model)
    pruned.keep(kept)
    return pruned


def _whole(keep: Iterable[int], n: int) -> list[int]:
    """As many as there can be, and some more: something may give them without end."""
    return [whole_number(one, "A prototype to keep") for one in islice(keep, 10 * n + 1000)]


def _indices(keep: Tensor | Iterable[int], n: int) -> list[int]:
    """In order, each once; numbers, which are at home on every device."""
    chosen = keep if isinstance(keep, Tensor) else torch.tensor(_whole(keep, n), dtype=torch.long)
    if chosen.dtype == torch.bool and chosen.shape == (n,):
        return torch.where(chosen)[0].tolist()
    whole = chosen.dim() == 1 and not (
        chosen.is_floating_point() or chosen.is_complex() or chosen.is_quantized
    )
    if not whole or chosen.layout != torch.strided or chosen.is_meta:
        raise ProtoPFaithError(
            f"The prototypes to keep are {n} booleans or indices from 0 to {n - 1}, not {shown(keep)}."
        )
    if chosen.dtype == torch.bool or (len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < n):
        raise ProtoPFaithError(
            f"The prototypes to keep are {n} booleans or indices from 0 to {n - 1}, but got {_brief(chosen)}."
        )
    return chosen.unique().tolist()


def _brief(chosen: Tensor) -> str:
    return f"{len(chosen)} booleans" if chosen.dtype == torch.bool else str(chosen.tolist()[:8])
