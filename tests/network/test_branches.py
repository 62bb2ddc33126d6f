"""Trees: every leaf has one way, and pruning keeps the others'."""

from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network.branches import Branches, full_tree, read_tree


def ways_by_walking(branches: Branches) -> dict[int, list[tuple[int, str]]]:
    """The slow, obvious way to each leaf."""
    found: dict[int, list[tuple[int, str]]] = {}

    def walk(place: int, way: list[tuple[int, str]]) -> None:
        if place < 0:
            found[-1 - place] = way
            return
        for side, child in zip(("left", "right"), branches.children[place], strict=True):
            walk(child, [*way, (place, side)])

    walk(0, [])
    return found


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_ways_are_those_of_a_walk(depth: int) -> None:
    branches = full_tree(depth)
    rights, lefts = branches.ways()
    assert (branches.nodes, branches.leaves, branches.depth) == (2**depth - 1, 2**depth, depth)
    for leaf, way in ways_by_walking(branches).items():
        sides = dict(way)
        for node in range(branches.nodes):
            assert rights[leaf][node] == float(sides.get(node) == "right")
            assert lefts[leaf][node] == float(sides.get(node) == "left")


@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_keeps_its_way_without_nodes_that_lost_a_side(seed: int) -> None:
    branches = full_tree(4)
    gone = torch.rand(branches.leaves, generator=torch.Generator().manual_seed(seed)) < 0.6
    gone[3] = gone[7] = False
    smaller, nodes, leaves = branches.without(gone)
    assert read_tree(smaller.children) == smaller
    assert leaves == [leaf for leaf in range(branches.leaves) if not gone[leaf]]
    before, after = ways_by_walking(branches), ways_by_walking(smaller)
    for number, leaf in enumerate(leaves):
        kept = [(node, side) for node, side in before[leaf] if node in nodes]
        assert [(nodes[node], side) for node, side in after[number]] == kept
    again, _, _ = smaller.without(torch.zeros(smaller.leaves, dtype=torch.bool))
    assert again.leaves == smaller.leaves


@pytest.mark.parametrize(
    "children",
    [
        [],
        [[1, 2]],
        [[-1, -1]],
        [[0, -1]],
        [[-1, -2, -3]],
        [[1, -1], [1, -2]],
        [[-1, -2], [1, -3]],
        [[True, -1]],
        "tree",
        [[number + 1, -1 - number] for number in range(99)] + [[-100, -101]],
    ],
)
def test_what_is_no_tree_is_refused(children: object) -> None:
    with pytest.raises(ProtoPFaithError, match="is none: for each node"):
        read_tree(children)  # type: ignore[arg-type]
