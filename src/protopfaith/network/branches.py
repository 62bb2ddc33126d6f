"""The shape of a binary tree: which node or leaf lies on which side of which node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError

MOST_NODES = 2**11
DEEPEST = 64


@dataclass(frozen=True)
class Branches:
    """For each node its child to the left and to the right: the number of a node, or -1 - l for leaf l.

    Args:
        children: of every node; node 0 is the root

    >>> full_tree(2).children
    ((1, 2), (-1, -2), (-3, -4))
    """

    children: tuple[tuple[int, int], ...]

    @property
    def nodes(self) -> int:
        return len(self.children)

    @property
    def leaves(self) -> int:
        return len(self.children) + 1

    @property
    def depth(self) -> int:
        """The most nodes on the way to a leaf."""
        return max(sum(side != 0 for side in way) for way in self._sides())

    def below(self, place: int) -> Iterator[int]:
        """The leaves below a node, or the leaf itself, from left to right."""
        todo = [place]
        while todo:
            here = todo.pop()
            if here < 0:
                yield -1 - here
            else:
                todo += reversed(self.children[here])

    def ways(self) -> tuple[list[list[float]], list[list[float]]]:
        """For every leaf the nodes that it lies to the right of, and those to the left: leaves x nodes, ones
        and zeros."""
        sides = self._sides()
        return (
            [[float(side > 0) for side in way] for way in sides],
            [[float(side < 0) for side in way] for way in sides],
        )

    def without(self, gone: Tensor) -> tuple[Branches, list[int], list[int]]:
        """The tree without some leaves: a node that loses a side is replaced by its other one.

        Args:
            gone: (leaves,), bool; at least one leaf must stay

        Returns:
            The smaller tree, and the numbers that its nodes and leaves had. Of a single leaf there is no
            tree: the root stays above it, and above a copy of it.
        """
        kept = [not lost for lost in gone.tolist()]
        old_leaves = [leaf for leaf in range(self.leaves) if kept[leaf]]
        if len(old_leaves) == 1:
            return Branches(((-1, -2),)), [0], old_leaves * 2
        old_nodes: list[int] = []
        children: list[tuple[int, int]] = []
        numbers: dict[int, int] = {}

        def settle(place: int) -> int | None:
            """The place in the smaller tree of what is below an old one; nodes before what is below them."""
            if place < 0:
                if not kept[-1 - place]:
                    return None
                numbers[-1 - place] = old_leaves.index(-1 - place)
                return -1 - numbers[-1 - place]
            both = all(any(kept[leaf] for leaf in self.below(child)) for child in self.children[place])
            if not both:
                left, right = (settle(child) for child in self.children[place])
                return right if left is None else left
            here = len(old_nodes)
            old_nodes.append(place)
            children.append((0, 0))
            left, right = (settle(child) for child in self.children[place])
            assert left is not None
            assert right is not None
            children[here] = (left, right)
            return here

        settle(0)
        return Branches(tuple(children)), old_nodes, old_leaves

    def _sides(self) -> list[list[int]]:
        """Leaves x nodes: 1 where the leaf lies to the right of the node, -1 to the left, else 0."""
        sides = [[0] * self.nodes for _ in range(self.leaves)]
        todo: list[tuple[int, list[tuple[int, int]]]] = [(0, [])]
        while todo:
            place, way = todo.pop()
            if place < 0:
                for node, side in way:
                    sides[-1 - place][node] = side
                continue
            left, right = self.children[place]
            todo += [(left, [*way, (place, -1)]), (right, [*way, (place, 1)])]
        return sides


def full_tree(depth: int) -> Branches:
    """2^depth leaves, numbered from left to right; nodes level by level."""
    nodes = 2**depth - 1

    def place(number: int) -> int:
        return number if number < nodes else -1 - (number - nodes)

    return Branches(tuple((place(2 * node + 1), place(2 * node + 2)) for node in range(nodes)))


def read_tree(children: Sequence[Sequence[int]]) -> Branches:
    """The tree that a list describes; raises if it is none.

    >>> read_tree([[-1, -2]]).leaves
    2
    """
    if not isinstance(children, (list, tuple)) or not 0 < len(children) <= MOST_NODES:
        raise _no_tree(children)
    for pair in children:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise _no_tree(children)
        if not all(isinstance(child, int) and not isinstance(child, bool) for child in pair):
            raise _no_tree(children)
    # Every node but the root and every leaf is once the child of somebody: with all reached from the root
    # there is no circle.
    below = sorted(child for pair in children for child in pair)
    leaves = len(children) + 1
    if below != [*range(-leaves, 0), *range(1, len(children))]:
        raise _no_tree(children)
    seen, todo = 0, [(0, 1)]
    while todo:
        node, depth = todo.pop()
        seen += 1
        if depth > DEEPEST:
            raise _no_tree(children)
        todo += [(child, depth + 1) for child in children[node] if child >= 0]
    if seen != len(children):
        raise _no_tree(children)
    return Branches(tuple((int(left), int(right)) for left, right in children))


def _no_tree(children: object) -> ProtoPFaithError:
    return ProtoPFaithError(
        f"The tree {shown(children)} is none: for each node give its child to the left and to the right, the "
        "number of another node or, for leaf l, -1 - l, each once."
    )
