"""ProtoTree (Nauta et al., 2021): a soft decision tree whose nodes ask whether an image has a prototype."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protopfaith.arguments import finite_number, whole_number
from protopfaith.dtypes import unrounded
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.branches import full_tree, read_tree
from protopfaith.network.contract import FAMILIES, NO_CLASS, Route, Turn
from protopfaith.network.patches import PatchNetwork, check_shaped, named_classes

DEEPEST = 11
SMALLEST = 1e-14  # added to squared distances, whose root has no slope at zero


@FAMILIES.register("prototree")
class ProtoTree(PatchNetwork):
    r"""A soft binary decision tree over prototypes: one for each inner node, a class distribution per leaf.

    With $s_j$ the smallest squared distance of prototype j to the image, node j sends the image to the right
    with probability $e^{-\sqrt{s_j}}$, and to the left otherwise. A leaf is reached with the product of the
    probabilities on its way, and the probability of a class is the mean of the leaves' distributions,
    weighted by that. `logits` are its logarithms. Prototypes belong to no class.

    Args:
        encoder: a name (see `protopfaith.network.build_encoder`) or a module that returns a feature map
        classes: their number or names
        depth: of the tree: 2^depth leaves, one node less
        prototype_channels: L, the length of a prototype
        in_channels: of the images
        activation: of Z, one of `ACTIVATIONS`
        layers: Z of another shape, as `[128, "sigmoid"]`; `activation` is then its last one
        weights: for the encoder: None, "imagenet", or the path of a state dict
        tree: a tree of another shape: for each node its child to the left and to the right, the number of a
            node, or of leaf l as -1 - l; node 0 is the root

    >>> tree = ProtoTree("small", ["cat", "dog"], depth=3, prototype_channels=16)
    >>> x = torch.zeros(4, 3, 96, 96)
    >>> tree(x).shape, tree.distances(x).shape, tree.leaves.shape
    (torch.Size([4, 2]), torch.Size([4, 7]), torch.Size([8, 2]))
    >>> bool(torch.allclose(tree(x).exp().sum(1), torch.ones(4)))
    True
    """

    family: ClassVar[str] = "prototree"
    header: ClassVar[dict[str, Any]] = {"tree": list}
    similarity = "exponential"
    own_map = "ProtoTree's own map"
    rights: Tensor
    lefts: Tensor
    alive: Tensor

    def __init__(
        self,
        encoder: str | nn.Module,
        classes: int | Sequence[str],
        depth: int = 4,
        prototype_channels: int = 128,
        *,
        in_channels: int = 3,
        activation: str = "sigmoid",
        layers: Sequence[int | str] | None = None,
        weights: str | Path | None = None,
        tree: Sequence[Sequence[int]] | None = None,
    ):
        names = named_classes(classes)
        whole_number(depth, "The depth of a tree", least=1, most=DEEPEST)
        branches = full_tree(depth) if tree is None else read_tree(tree)
        super().__init__(
            encoder,
            names,
            torch.full((branches.nodes,), NO_CLASS),
            prototype_channels,
            in_channels=in_channels,
            activation=activation,
            layers=layers,
            weights=weights,
        )
        self.branches = branches
        self.leaves = nn.Parameter(torch.zeros(branches.leaves, len(names)), requires_grad=False)
        rights, lefts = branches.ways()
        self.register_buffer("rights", torch.tensor(rights), persistent=False)
        self.register_buffer("lefts", torch.tensor(lefts), persistent=False)
        # What pruning has left; leaves go from the tensors only when the network is finished.
        self.register_buffer("alive", torch.ones(branches.leaves, dtype=torch.bool))

    def similarities(self, distances: Tensor) -> Tensor:
        """The probability to go right, from squared distances of any shape."""
        check_shaped(distances)
        return torch.exp(-_roots(distances))

    def readout(self) -> None:
        """None: the output of a tree is no weighted sum of similarities."""
        return

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """The log probabilities of the classes, (B, C).

        Args:
            distances: squared, (B, P)
            rows: None: there are no weights that others could replace
        """
        if rows is not None:
            raise ProtoPFaithError("The output of a ProtoTree is no weighted sum, so it takes no weights.")
        self._check_distances(distances)
        if distances.dim() != 2:
            raise ProtoPFaithError(f"Distances are images x prototypes, not {tuple(distances.shape)}.")
        with unrounded(self.prototypes.device.type):
            return log_mixture(self.leaf_log_probabilities(distances), self.log_distributions())

    def leaf_log_probabilities(self, distances: Tensor) -> Tensor:
        """The log probability to come to each leaf, (B, leaves); -inf for leaves that were pruned.

        Args:
            distances: squared, (B, P)
        """
        self._check_distances(distances)
        roots = _roots(distances.to(torch.promote_types(distances.dtype, torch.float32)))
        decides = self.deciding().to(roots)
        right, left = -roots * decides, torch.log(-torch.expm1(-roots)) * decides
        ways = right @ self.rights.to(roots).T + left @ self.lefts.to(roots).T
        return ways.masked_fill(~self.alive, -torch.inf)

    def log_distributions(self) -> Tensor:
        """The log probability of each class in each leaf, (leaves, C)."""
        return self.leaves.log_softmax(1)

    def deciding(self) -> Tensor:
        """The nodes, (P,), that still have leaves on both sides; all others pass every image on."""
        alive = self.alive.to(self.rights)
        return (alive @ self.rights > 0) & (alive @ self.lefts > 0)

    def route(self, distances: Tensor) -> Route:
        """The way of an image to a leaf, at every node to the more probable side.

        Args:
            distances: of the image, squared, (P,)
        """
        self._check_distances(distances)
        if distances.dim() != 1:
            raise ProtoPFaithError(
                "The way through a tree is that of one image: give its distances, one for each prototype, "
                f"not {tuple(distances.shape)}."
            )
        right = self.similarities(distances.detach().double().cpu()).tolist()
        decides, alive = self.deciding().tolist(), self.alive.tolist()
        turns: list[Turn] = []
        place = 0
        while place >= 0:
            left_child, right_child = self.branches.children[place]
            if decides[place]:
                yes = right[place] >= 0.5
                turns.append(Turn(place, yes, right[place] if yes else 1 - right[place]))
            else:
                yes = any(alive[leaf] for leaf in self.branches.below(right_child))
            place = right_child if yes else left_child
        leaf = -1 - place
        distributions = self.log_distributions().detach().exp().double().cpu()
        return Route(
            tuple(turns),
            leaf,
            distributions[leaf],
            self.branches.children,
            tuple(distributions.argmax(1).tolist()),
        )

    @torch.no_grad()
    def prune_leaves(self, above_chance: float) -> int:
        """Takes leaves away whose most probable class is hardly more probable than by chance.

        Nodes that have leaves on one side only then pass every image on. The leaf that knows most stays.

        Args:
            above_chance: what the most probable class of a leaf must have above 1 / C to stay

        Returns:
            How many went.
        """
        above_chance = finite_number(above_chance, "What a leaf must have above chance")
        most = self.log_distributions().exp().amax(1) - 1 / len(self.class_names)
        stays = self.alive & (most > above_chance)
        if not bool(stays.any()):
            stays[most.masked_fill(~self.alive, -1).argmax()] = True
        gone = int((self.alive & ~stays).sum())
        self.alive.copy_(stays)
        return gone

    @torch.no_grad()
    def finished(self) -> ProtoTree:
        """The same tree without what pruning took away; itself where nothing was.

        A tree of one leaf keeps its root, with that leaf on both sides.
        """
        if bool(self.alive.all()):
            return self
        branches, nodes, leaves = self.branches.without(~self.alive.cpu())
        smaller = copy.copy(self)
        # A shallow copy: encoder and features are shared, what differs is replaced below.
        smaller._parameters, smaller._buffers = dict(self._parameters), dict(self._buffers)
        device = self.prototypes.device
        rights, lefts = (torch.tensor(sides, device=device) for sides in branches.ways())
        smaller.branches = branches
        smaller.prototypes = nn.Parameter(self.prototypes[nodes], self.prototypes.requires_grad)
        smaller.leaves = nn.Parameter(self.leaves[leaves], requires_grad=False)
        smaller.rights, smaller.lefts = rights, lefts
        smaller.alive = torch.ones(branches.leaves, dtype=torch.bool, device=device)
        smaller.prototype_classes = self.prototype_classes[nodes]
        smaller.sources = [self.sources[node] for node in nodes]
        return smaller

    @property
    def config(self) -> dict[str, Any]:
        """What the constructor needs to build this network again, but for a module given as encoder."""
        return {**super().config, "tree": [list(pair) for pair in self.branches.children]}


def log_mixture(ways: Tensor, log_distributions: Tensor) -> Tensor:
    """log of the sum over leaves of exp(ways) (B, leaves) times exp(log_distributions) (leaves, C): (B, C).

    A product of matrices, each scaled so that its largest entries are one: no tensor of B x leaves x C.
    """
    log_distributions = log_distributions.to(ways)
    most_way = ways.detach().amax(1, keepdim=True)
    most_class = log_distributions.detach().amax(0)
    sums = torch.exp(ways - most_way) @ torch.exp(log_distributions - most_class)
    return sums.clamp_min(torch.finfo(sums.dtype).tiny).log() + most_way + most_class


def _roots(distances: Tensor) -> Tensor:
    """The unsquared distances."""
    return (distances + SMALLEST).sqrt()
