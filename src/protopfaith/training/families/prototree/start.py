"""Where a tree starts: classes that look alike below the same nodes, prototypes on patches of those to the
right, and nodes that are undecided.

With leaves that know nothing all sides are alike, and a tree of many classes needs many epochs to get away
from there. The plain classifier knows which classes are alike: its weights are split in two at every node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protopfaith.network import ProtoTree
from protopfaith.network.branches import Branches

SURE = 6.0  # of a leaf's class, before it has learned anything
UNDECIDED = math.log(2)  # the distance at which both sides are equally probable
ROUNDS = 3  # of scaling Z
LEAST, MOST = 0.05, 20.0  # factors of one round


@dataclass(frozen=True)
class ClassSplit:
    """Classes on the sides of nodes.

    Args:
        right: for every node, the classes to the right of it
        leaves: for every leaf, its classes
    """

    right: tuple[tuple[int, ...], ...]
    leaves: tuple[tuple[int, ...], ...]


def split_classes(vectors: Tensor, branches: Branches) -> ClassSplit:
    """Halves the classes at every node, across the direction in which they differ most.

    A class that is alone goes on to both sides.

    Args:
        vectors: one for each class, (C, channels)
        branches: the tree

    >>> from protopfaith.network.branches import full_tree
    >>> split_classes(torch.tensor([[0.0], [5.0], [0.1], [5.2]]), full_tree(2)).leaves
    ((0,), (2,), (1,), (3,))
    """
    right: list[tuple[int, ...]] = [()] * branches.nodes
    leaves: list[tuple[int, ...]] = [()] * branches.leaves
    todo = [(0, list(range(len(vectors))))]
    while todo:
        place, classes = todo.pop()
        if place < 0:
            leaves[-1 - place] = tuple(classes)
            continue
        one, two = (classes, classes) if len(classes) == 1 else _halves(vectors, classes)
        right[place] = tuple(two)
        left_child, right_child = branches.children[place]
        todo += [(left_child, one), (right_child, two)]
    return ClassSplit(tuple(right), tuple(leaves))


def _halves(vectors: Tensor, classes: list[int]) -> tuple[list[int], list[int]]:
    own = vectors[classes].double().cpu()
    own = own - own.mean(0)
    direction = torch.linalg.svd(own, full_matrices=False)[2][0]
    direction = direction * direction[direction.abs().argmax()].sign()  # the sign of svd is anybody's guess
    ranked = (own @ direction).argsort(stable=True).tolist()
    half = len(classes) // 2
    return [classes[i] for i in ranked[:half]], [classes[i] for i in ranked[half:]]


def typical_classes(vectors: Tensor, split: ClassSplit) -> Tensor:
    """For every node the class to its right that is most like the mean of those, (P,)."""
    found = []
    for classes in split.right:
        own = vectors[list(classes)].double().cpu()
        nearest = int((own - own.mean(0)).square().sum(1).argmin())
        found.append(classes[nearest])
    return torch.tensor(found)


@torch.no_grad()
def start_leaves(tree: ProtoTree, split: ClassSplit) -> None:
    """Leaves that are for their classes."""
    tree.leaves.zero_()
    for leaf, classes in enumerate(split.leaves):
        tree.leaves[leaf, list(classes)] = SURE


@torch.no_grad()
def scale_features(tree: ProtoTree, median: float) -> float:
    """Scales Z's last convolution so that distances of `median` become undecided, as far as that is linear.

    Returns:
        The factor.
    """
    last = [layer for layer in tree.features if isinstance(layer, nn.Conv2d)][-1]
    factor = min(max(UNDECIDED / max(median, 1e-9), LEAST), MOST)
    last.weight.mul_(factor)
    return factor
