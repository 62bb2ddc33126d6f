"""Prototypes of a class at different places of an image, by assignment.

The cluster cost pulls the nearest prototype of the class towards an image, wherever that is nearest: all of
them may learn the same part, or what the encoder knows of the object beside it. Here every prototype of the
class is given a place of its own first, where the object is, and then has to find that place.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

RADIUS = 1
"""Positions around a place that is taken, in each direction, that are taken with it."""
TELLING = 0.3
"""The share of an image's positions, those with most evidence for its class, that are places."""
SHARPNESS = 0.1
"""The squared distance, on the unit sphere, by which a place must be nearer to be e times as probable."""


def placed_cost(
    maps: Tensor, labels: Tensor, prototype_classes: Tensor, classes: int, evidence: Tensor | None = None
) -> Tensor:
    """How badly the prototypes of an image's class find the places that are theirs, the mean of all.

    Each looks for its place among all positions but the neighbors of that place, which see much the same: a
    cross-entropy over positions, with logits -distance / `SHARPNESS`.

    Args:
        maps: distances, B x P x h x w
        labels: B
        prototype_classes: P, as many for each class
        classes: how many
        evidence: for the class of each image, B x h x w; places are sought where there is most of it

    >>> maps = torch.tensor([[[[0.0, 5.0, 5.0, 1.0]], [[0.1, 5.0, 5.0, 2.0]]]])
    >>> cost = placed_cost(maps, torch.tensor([0]), torch.tensor([0, 0]), 1)
    >>> round(float(cost), 1)  # the second should be near 2 and is nearest to 0.1: (0 + 1.9 / 0.1) / 2
    9.5
    """
    own = maps_of_own_class(maps, labels, prototype_classes, classes)
    with torch.no_grad():
        places = assign_places(own, None if evidence is None else telling(evidence))
        neighbors = within_reach(places, own.shape[2], own.shape[3]).scatter_(2, places[:, :, None], False)
    logits = (-own.flatten(2).float() / SHARPNESS).masked_fill(neighbors, -torch.inf)
    return functional.cross_entropy(logits.flatten(0, 1), places.flatten())


def within_reach(places: Tensor, height: int, width: int) -> Tensor:
    """Which positions lie within `RADIUS` of each place (B x K): truth values, B x K x positions."""
    positions = torch.arange(height * width, device=places.device)
    rows = (positions // width - (places // width)[:, :, None]).abs()
    columns = (positions % width - (places % width)[:, :, None]).abs()
    return torch.maximum(rows, columns) <= RADIUS


def maps_of_own_class(maps: Tensor, labels: Tensor, prototype_classes: Tensor, classes: int) -> Tensor:
    """The maps of the prototypes of each image's class: B x K x h x w."""
    members = prototype_classes.argsort(stable=True).reshape(classes, -1)[labels]
    return maps.gather(1, members[:, :, None, None].expand(-1, -1, *maps.shape[2:]))


def telling(evidence: Tensor) -> Tensor:
    """Which positions have most of the evidence (B x h x w): truth values of the same shape."""
    flat = evidence.flatten(1)
    fewest = max(round(TELLING * flat.shape[1]), 1)
    return (flat >= flat.topk(fewest, dim=1).values[:, -1:]).view_as(evidence)


def assign_places(maps: Tensor, allowed: Tensor | None = None) -> Tensor:
    """A place for each map (B x K x h x w), apart from all others': the smallest distance of all comes first,
    then the smallest among the maps and positions that are left, and so on. B x K, as numbers of positions.

    Where no position is left, all are free again.
    """
    count, each, height, width = maps.shape
    left = torch.ones(count, 1, height, width, dtype=torch.bool, device=maps.device)
    free = left if allowed is None else allowed[:, None]
    waiting = torch.ones(count, each, dtype=torch.bool, device=maps.device)
    places = torch.zeros(count, each, dtype=torch.long, device=maps.device)
    unreachable = maps.detach().amax() + 1
    for _ in range(each):
        none_left = ~(free & left).flatten(1).any(dim=1)
        left = left | none_left[:, None, None, None]
        usable = free & left & waiting[:, :, None, None]
        best = torch.where(usable, maps, unreachable).flatten(1).argmin(dim=1)
        which, place = best // (height * width), best % (height * width)
        places.scatter_(1, which[:, None], place[:, None])
        waiting = waiting.scatter(1, which[:, None], False)
        left = left & ~within_reach(place[:, None], height, width).view_as(left)
    return places
