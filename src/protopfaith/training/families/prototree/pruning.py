"""A tree without some of its leaves."""

from __future__ import annotations

import copy

from protopfaith.arguments import finite_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoTree


def prune_tree(model: ProtoTree, above_chance: float) -> tuple[ProtoTree, tuple[int, ...]]:
    """A copy of a tree without leaves near chance, and the nodes that went with them.

    Args:
        model: the tree; it stays as it is
        above_chance: what the most probable class of a leaf must have above 1 / C to stay

    >>> tree = ProtoTree("small", ["cat", "dog"], depth=2, prototype_channels=8)
    >>> tree.leaves.data[0, 0] = tree.leaves.data[3, 1] = 5.0
    >>> smaller, dropped = prune_tree(tree, 0.1)
    >>> smaller.branches.children, dropped
    (((-1, -2),), (1, 2))
    """
    finite_number(above_chance, "What leaves have above chance", least=0)
    pruned = copy.deepcopy(model)
    if not pruned.prune_leaves(above_chance):
        raise ProtoPFaithError(
            f"No leaf of this tree is at most {above_chance:g} above chance; give a larger --leaves (the "
            f"least sure one is {_least(model):.3g} above)."
        )
    kept = set(pruned.branches.without(~pruned.alive.cpu())[1])
    return pruned.finished(), tuple(node for node in range(len(model.prototypes)) if node not in kept)


def _least(model: ProtoTree) -> float:
    """What the most probable class of the least sure leaf has above chance."""
    most = model.log_distributions().exp().amax(1)[model.alive]
    return float(most.min()) - 1 / len(model.class_names)
