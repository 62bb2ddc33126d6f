"""Where trees start: every class has leaves, alike ones are neighbors, and nodes are undecided."""

from __future__ import annotations

import math

import pytest
import torch

from protopfaith.network import ProtoTree
from protopfaith.network.branches import full_tree
from protopfaith.training.families.prototree.start import (
    UNDECIDED,
    scale_features,
    split_classes,
    start_leaves,
    typical_classes,
)


@pytest.mark.parametrize(("classes", "depth"), [(8, 4), (5, 3), (9, 3), (2, 1)])
def test_every_class_has_leaves_below_the_nodes_it_goes_right_at(classes: int, depth: int) -> None:
    vectors = torch.randn(classes, 6, generator=torch.Generator().manual_seed(0))
    branches = full_tree(depth)
    split = split_classes(vectors, branches)
    assert set().union(*split.leaves) == set(range(classes))
    assert all(split.leaves)
    for node, (left, right) in enumerate(branches.children):
        below_right = set().union(*(split.leaves[leaf] for leaf in branches.below(right)))
        below_left = set().union(*(split.leaves[leaf] for leaf in branches.below(left)))
        assert below_right == set(split.right[node])
        assert not below_left & below_right or below_left == below_right  # a class alone is on both sides
    owners = typical_classes(vectors, split)
    assert all(int(owner) in split.right[node] for node, owner in enumerate(owners))


def test_classes_that_are_alike_are_parted_last() -> None:
    vectors = torch.tensor([[0.0, 0], [10, 0], [0, 0.1], [10, 0.1]])
    split = split_classes(vectors, full_tree(2))
    assert set(split.right[0]) in ({1, 3}, {0, 2})


def test_leaves_start_as_their_classes() -> None:
    tree = ProtoTree("small", 4, depth=3, prototype_channels=8)
    split = split_classes(torch.randn(4, 5), tree.branches)
    start_leaves(tree, split)
    for leaf, classes in enumerate(split.leaves):
        assert int(tree.leaves[leaf].argmax()) in classes
        assert float(tree.log_distributions()[leaf].exp().amax()) > 0.9


def test_scaling_makes_nodes_undecided() -> None:
    torch.manual_seed(0)
    tree = ProtoTree("small", 4, depth=3, prototype_channels=8).eval()
    x = torch.rand(16, 3, 32, 32)

    def median() -> float:
        with torch.no_grad():
            tree.prototypes.copy_(tree.latent(x)[:7, :, 0, 0])  # on patches, as they start
            return float(tree.distances(x).sqrt().median())

    for _ in range(6):
        scale_features(tree, median())
    assert median() == pytest.approx(UNDECIDED, rel=0.3)
    assert pytest.approx(math.log(2)) == UNDECIDED
