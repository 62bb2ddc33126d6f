"""Does a prototype stand for a part of the object? Consistency, stability and coverage of parts.

Consistency and stability are those of Huang et al., "Evaluation and Improvement of Interpretability for
Self-Explainable Part-Prototype Networks" (ICCV 2023). Shapes: P prototypes of a class, I images, J parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError

BOX = 72 / 224
"""Side of the box around a map's peak, as a share of the image's: 72 of 224 pixels in the paper."""
OFTEN = 0.8
"""A prototype is consistent if one part is in its box in at least this share of the images that show it."""


def peak(explanation: Tensor) -> tuple[float, float]:
    """Where a map (H, W) is largest: (x, y), the middle of the pixels that share the largest value.

    Args:
        explanation: a map, large where the prototype is

    >>> explanation = torch.zeros(8, 8)
    >>> explanation[2:4, 5:7] = 1
    >>> peak(explanation)
    (6.0, 3.0)
    """
    rows, columns = torch.where(explanation == explanation.max())
    if not len(rows):
        raise ProtoPFaithError("A map has no largest value, as it holds values that are no numbers.")
    return float(columns.double().mean()) + 0.5, float(rows.double().mean()) + 0.5


def parts_in_box(
    points: Tensor, place: tuple[float, float], size: tuple[int, int], box: float = BOX
) -> Tensor:
    """Which of the points (J, 2), as (x, y), lie in a box around a place; (J,), bool.

    The box keeps its size: at the border of the image it is moved inside. Points that are not a number, as
    those of hidden parts, are not in it.

    Args:
        points: of the parts
        place: middle of the box, (x, y)
        size: height and width of the image
        box: the box's side, as a share of the image's

    >>> parts_in_box(torch.tensor([[10.0, 10.0], [60.0, 10.0]]), (20.0, 20.0), (100, 100), box=0.3)
    tensor([ True, False])
    """
    inside = torch.ones(len(points), dtype=torch.bool)
    for axis, side in ((0, size[1]), (1, size[0])):
        length = box * side
        start = min(max(place[axis] - length / 2, 0.0), side - length)
        inside &= (points[:, axis] >= start) & (points[:, axis] <= start + length)
    return inside


def nearest_part(points: Tensor, place: Sequence[float], inside: Tensor) -> int:
    """The part in the box that is nearest to its middle; -1 where there is none.

    Args:
        points: (J, 2)
        place: (x, y)
        inside: (J,), as `parts_in_box` says

    >>> nearest_part(torch.tensor([[10.0, 10.0], [18.0, 20.0]]), (20.0, 20.0), torch.tensor([True, True]))
    1
    """
    if not inside.any():
        return -1
    distances = (points.double() - torch.tensor(place, dtype=torch.float64)).square().sum(1)
    return int(torch.where(inside, distances, torch.inf).argmin())


def part_frequencies(hits: Tensor, visible: Tensor) -> Tensor:
    """How often each part is in a prototype's box, of the images that show the part; (P, J), NaN where none
    does.

    Args:
        hits: (P, I, J), bool: the parts in the box
        visible: (I, J), bool: the parts in the image
    """
    return (hits & visible).sum(1).double() / visible.sum(0).double()


def consistent(hits: Tensor, visible: Tensor, often: float = OFTEN) -> Tensor:
    """Whether each prototype sits on one part throughout: its most frequent part is in the box in at least
    this share of the images that show it; (P,). The mean over all prototypes is the consistency score.

    Args:
        hits: (P, I, J), bool
        visible: (I, J), bool
        often: the share

    >>> hits = torch.tensor([[[True, False], [True, True]], [[True, False], [False, True]]])
    >>> consistent(hits, torch.ones(2, 2, dtype=torch.bool))
    tensor([ True, False])
    """
    return (part_frequencies(hits, visible).nan_to_num(nan=0.0) >= often).any(1)


def stable(hits: Tensor, noisy: Tensor, visible: Tensor) -> Tensor:
    """The share of the images in which the parts in a prototype's box are all the same after noise; (P,). The
    mean over all prototypes is the stability score.

    Args:
        hits: (P, I, J), bool
        noisy: the same on images with noise
        visible: (I, J), bool

    >>> hits = torch.tensor([[[True, False], [False, False]]])
    >>> stable(hits, torch.tensor([[[True, False], [False, True]]]), torch.ones(2, 2, dtype=torch.bool))
    tensor([0.5000], dtype=torch.float64)
    """
    same = ((hits & visible) == (noisy & visible)).all(2)
    return same.double().mean(1)


def main_parts(nearest: Tensor) -> Tensor:
    """The part that each prototype sits on most often; -1 if it is most often on none; (P,).

    Args:
        nearest: (P, I), the part nearest to the peak in each image, -1 for none

    >>> main_parts(torch.tensor([[2, 2, 0], [-1, -1, 1]]))
    tensor([ 2, -1])
    """
    return torch.stack([torch.mode(row).values for row in nearest])


def coverage(main: Sequence[int] | Tensor, kinds: Sequence[int] | None = None) -> int:
    """How many different parts the prototypes of a class sit on.

    Args:
        main: each prototype's part, -1 for none
        kinds: for each part, which kind it is: parts of one kind, as the left and the right wing, count once

    >>> coverage([0, 1, 1, -1]), coverage([0, 1], kinds=[0, 0])
    (2, 1)
    """
    numbers = [int(part) for part in main if part >= 0]
    return len({part if kinds is None else kinds[part] for part in numbers})


def part_kinds(names: Sequence[str]) -> list[int]:
    """Numbers of the kinds of parts: left and right ones are of one kind.

    >>> part_kinds(["beak", "left wing", "right wing"])
    [0, 1, 1]
    """
    kinds: dict[str, int] = {}
    return [kinds.setdefault(re.sub(r"^(left|right)\s+", "", name.lower()), len(kinds)) for name in names]


def mask_point(mask: Tensor) -> tuple[float, float]:
    """One point (x, y) for a part that is known pixel by pixel: its pixel nearest to the middle of all.

    Args:
        mask: (H, W), bool, not empty

    >>> mask = torch.zeros(5, 5, dtype=torch.bool)
    >>> mask[1, 1:4] = True
    >>> mask_point(mask)
    (2.5, 1.5)
    """
    rows, columns = (axis.double() for axis in torch.where(mask))
    chosen = int(((rows - rows.mean()).square() + (columns - columns.mean()).square()).argmin())
    return float(columns[chosen]) + 0.5, float(rows[chosen]) + 0.5


def part_points(points: Mapping[str, tuple[float, float]], names: Sequence[str]) -> Tensor:
    """The points of all parts by name, (J, 2); not-a-number for hidden ones.

    >>> part_points({"tail": (3.0, 4.0)}, ["beak", "tail"])
    tensor([[nan, nan],
            [3., 4.]])
    """
    nothing = (float("nan"), float("nan"))
    return torch.tensor([points.get(name, nothing) for name in names]).reshape(-1, 2)
