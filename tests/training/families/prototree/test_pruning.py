"""Leaves that know nothing go, and with them nodes; the tree itself stays as it is."""

from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoTree
from protopfaith.training.families.prototree.pruning import prune_tree


@pytest.fixture
def tree() -> ProtoTree:
    torch.manual_seed(0)
    tree = ProtoTree("small", ["cat", "dog"], depth=2, prototype_channels=4).eval()
    tree.leaves.data[0, 0] = tree.leaves.data[3, 1] = 5.0
    return tree


def test_the_smaller_tree_decides_by_what_is_left(tree: ProtoTree) -> None:
    smaller, dropped = prune_tree(tree, 0.1)
    assert dropped == (1, 2)
    assert len(smaller.prototypes) == 1
    distances = torch.rand(3, 3)
    right = torch.exp(-distances[:, 0].sqrt())[:, None]
    sure = torch.tensor([5.0, 0.0]).softmax(0)
    expected = (1 - right) * sure + right * sure.flip(0)
    with torch.no_grad():
        assert torch.allclose(smaller.logits(distances[:, :1]).exp(), expected, atol=1e-5)


def test_the_tree_itself_stays(tree: ProtoTree) -> None:
    prune_tree(tree, 0.1)
    assert len(tree.prototypes) == 3
    assert bool(tree.alive.all())


@pytest.mark.parametrize(("above", "words"), [(0.0, "No leaf of this tree"), (-0.1, "at least 0")])
def test_what_cannot_be_pruned_is_told(tree: ProtoTree, above: float, words: str) -> None:
    tree.leaves.data[:, 0] += 1.0  # now all know something
    with pytest.raises(ProtoPFaithError, match=words):
        prune_tree(tree, above)


def test_the_least_that_would_go_is_told(tree: ProtoTree) -> None:
    tree.leaves.data[:, 0] += 1.0  # the least sure leaf: 1 / (1 + 1 / e) of one class of two
    with pytest.raises(ProtoPFaithError, match=r"the least sure one is 0\.231 above"):
        prune_tree(tree, 0.2)
    assert prune_tree(tree, 0.232)[1]
