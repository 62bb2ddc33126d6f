"""The decision tree of a ProtoTree of CaBRNet: its shape from the state dict's `_extra_state`, its leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.arguments import shown
from protopfaith.conversion.formats import Asked
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.branches import DEEPEST, MOST_NODES, Branches

CLASSIFIER = "ProtoTreeClassifier"
SIMILARITIES = ("ProtoTreeSimilarity", "LegacyProtoTreeSimilarity")
"""The same formula, computed in two ways."""
LARGEST_EPSILON = 1e-8  # what is added to squared distances; less changes nothing
SIDES = ("nsim", "sim")  # left and right


@dataclass(frozen=True, eq=False)
class ForeignTree:
    """A tree as CaBRNet has it.

    Args:
        branches: its shape, nodes before what is below them
        prototypes: of every node, its prototype's number
        leaves: (leaves, C), whose softmax is the distribution
    """

    branches: Branches
    prototypes: list[int]
    leaves: Tensor


def read_cabrnet_tree(extra: Any, state: Mapping[str, Tensor], path: Path) -> ForeignTree:
    """Understands a tree.

    Args:
        extra: the `_extra_state` of the state dict
        state: its tensors by name
        path: of the directory
    """
    reader = _Reader(state, path)
    if not isinstance(extra, Mapping) or extra.get("module") != "BinaryNode":
        raise reader.damaged("says no tree in its _extra_state")
    reader.place(extra, "classifier.tree.", 0)
    if len({len(leaf) for leaf in reader.leaves}) != 1 or len(set(reader.prototypes)) != len(
        reader.prototypes
    ):
        raise reader.damaged("has leaves of several sizes, or nodes with the same prototype")
    return ForeignTree(Branches(tuple(reader.children)), reader.prototypes, torch.stack(reader.leaves))


class _Reader:
    """Walks through the nested description, and finds every leaf's tensor by the names on the way."""

    def __init__(self, state: Mapping[str, Tensor], path: Path):
        self.state, self.path = state, path
        self.children: list[tuple[int, int]] = []
        self.prototypes: list[int] = []
        self.leaves: list[Tensor] = []

    def damaged(self, what: str) -> ProtoPFaithError:
        return ProtoPFaithError(f"{self.path} {what}; use another copy of it.")

    def place(self, described: Any, name: str, depth: int) -> int:
        """The number of a node, or -1 - l of leaf l, and of all that is below it."""
        if not isinstance(described, Mapping) or depth > DEEPEST or len(self.children) > MOST_NODES:
            raise self.damaged("describes no tree in its _extra_state, or one that is too large")
        if described.get("module") == "LeafNode":
            return self._leaf(name)
        if described.get("module") != "BinaryNode":
            raise self.damaged(f"has a node of the kind {shown(described.get('module'))} in its tree")
        children, numbers = described.get("children"), described.get("proto_idxs")
        if not isinstance(children, (list, tuple)) or len(children) != len(SIDES):
            raise self.damaged("has a node without two children in its tree")
        if not isinstance(numbers, (list, tuple)) or len(numbers) != 1 or not isinstance(numbers[0], int):
            raise self.damaged("has a node without its one prototype in its tree")
        here = len(self.children)
        self.children.append((0, 0))
        self.prototypes.append(numbers[0])
        start = f"{name}{described.get('node_id')}_child_"
        left, right = (
            self.place(child, f"{start}{side}.", depth + 1)
            for side, child in zip(SIDES, children, strict=True)
        )
        self.children[here] = (left, right)
        return here

    def _leaf(self, name: str) -> int:
        tensor = self.state.get(f"{name}_relative_distribution")
        if tensor is None or tensor.dim() != 2 or len(tensor) != 1:
            raise self.damaged(f"lacks the tensor {name[:200]}_relative_distribution of its tree")
        self.leaves.append(tensor[0])
        return -len(self.leaves)


def check_similarity(architecture: Mapping[str, Any], asked: Asked, path: Path) -> None:
    """Raises unless it is $e^{-d}$ of the unsquared distance; a missing section is the legacy one."""
    described = architecture.get("similarity")
    described = described if isinstance(described, dict) else {"name": SIMILARITIES[1]}
    if described.get("name") not in SIMILARITIES:
        raise ProtoPFaithError(
            f"The similarity of {path} is {shown(described.get('name'))}; of a tree "
            f"{' and '.join(SIMILARITIES)} can be converted."
        )
    if asked.similarity is not None or asked.epsilon is not None:
        raise ProtoPFaithError(
            f"{path} is a tree, whose similarity is e to the minus distance; leave out --similarity and "
            "--epsilon."
        )
    params = _params(described)
    if bool(params.get("log_probabilities")) != bool(
        _params(architecture.get("classifier")).get("log_probabilities")
    ):
        raise ProtoPFaithError(
            f"Of the similarity and the classifier of {path} only one has log_probabilities in its params, "
            "so that its outputs are no probabilities; give it to both."
        )
    epsilon = params.get("stability_factor", 0.0)
    if not isinstance(epsilon, int | float) or not 0 <= epsilon <= LARGEST_EPSILON:
        raise ProtoPFaithError(
            f"The stability_factor of {path} is {shown(epsilon)}, and only up to {LARGEST_EPSILON:g} can be "
            "converted; correct it."
        )


def _params(section: Any) -> Mapping[str, Any]:
    params = section.get("params") if isinstance(section, Mapping) else None
    return params if isinstance(params, Mapping) else {}
