"""What explanations ask of a prototype network, whatever its family: little, written down here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from protopfaith.annotations import check_fields
from protopfaith.arguments import instance, tensor, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.outcome import outcome_of
from protopfaith.registry import Registry


@dataclass(frozen=True)
class PrototypeSource:
    """The training image and the latent position that a projected prototype is equal to.

    Args:
        image: path relative to the data's root, or the embedded data's id
        row: of the latent position, counted from the top
        column: of the latent position, counted from the left
        sha256: of the image as stored
        exact: False where the prototype only resembles that place, as those of a converted network that was
            not projected onto these images

    >>> PrototypeSource("cats/7.png", row=3, column=5, sha256="e3b0c442").image
    'cats/7.png'
    """

    image: str
    row: int
    column: int
    sha256: str
    exact: bool = True

    def __post_init__(self) -> None:
        check_fields(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; without `exact` where it says nothing new, as in files that were written before it.

        >>> PrototypeSource("cats/7.png", 3, 5, "e3b0c442").to_dict()
        {'image': 'cats/7.png', 'row': 3, 'column': 5, 'sha256': 'e3b0c442'}
        """
        found = asdict(self)
        return {key: value for key, value in found.items() if key != "exact" or not value}


@dataclass(frozen=True)
class Turn:
    """One question on the way through a tree: is there something like this prototype?

    Args:
        prototype: the index of the prototype that the node compares the image with
        right: whether the way goes on to the right, that is: yes
        probability: of the side that is taken

    >>> round(Turn(prototype=0, right=True, probability=0.5).log_probability, 3)
    -0.693
    """

    prototype: int
    right: bool
    probability: float

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def log_probability(self) -> float:
        return math.log(self.probability) if self.probability > 0 else -math.inf


@dataclass(frozen=True, eq=False)
class Route:
    """The way of one image from the root of a tree to a leaf, at every node to the more probable side.

    Args:
        turns: one for each node, from the root
        leaf: its number
        leaf_probabilities: of the classes in that leaf, (C,)
        children: of every node the one to the left and to the right: a node, or leaf l as -1 - l
        leaf_classes: the most probable class of every leaf

    >>> from torch import tensor
    >>> route = Route((Turn(0, True, 0.8), Turn(2, False, 0.5)), 2, leaf_probabilities=tensor([1.0, 0.0]))
    >>> round(route.probability, 3)
    0.4
    """

    turns: tuple[Turn, ...]
    leaf: int
    leaf_probabilities: Tensor
    children: tuple[tuple[int, int], ...] = ()
    leaf_classes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def log_probability(self) -> float:
        """Of coming to this leaf: the sum of the turns' own."""
        return sum(turn.log_probability for turn in self.turns)

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)

    def __repr__(self) -> str:
        return f"Route({len(self.turns)} turns to leaf {self.leaf}, probability={self.probability:.3g})"


NO_CLASS = -1
"""The class of a prototype that belongs to none."""


class PrototypeNetwork(Protocol):
    r"""A network that compares images with prototypes and decides by how similar they are.

    A game on an image x asks for its distances $s_j(x)$ to P prototypes. How outputs follow from them is, for
    most families, a sum: the logit of class c is $\sum_j a_{cj}\,\sigma(s_j)$, with the similarity
    $\sigma$ of `similarities` and the weights of `readout`. Where outputs are no such sum `readout` gives
    None: `logits` alone says how they follow, and they are explained by a game of their own. Where each
    prototype comes from is in `sources`. `ProtoPNet` is one such network; one of your own (a module) is
    explained like it if it has what stands here. `check_contract` says what is missing.

    Logits are those of one class of many, whose probabilities are their softmax; a network whose `outcome` is
    "several" decides on findings instead, each by itself: their probabilities are the logits' sigmoids.

    Three methods more are asked for where there are such. `route(distances)`, of a network that decides by a
    way through a tree: of the distances (P,) of one image, a `Route`. `occurrence_maps(x)`, of one that says
    itself where it looks for each prototype: (B, P, h, w), which then stand beside our maps.
    `keep(kept)`, of one that does without some of its prototypes: forgets all others, in place. A text
    `own_map` says what the network's own maps are called where they are not ProtoPNet's.

    Args:
        args: whatever a family takes
        kwargs: the same by name

    >>> from protopfaith.network import ProtoPNet
    >>> network: PrototypeNetwork = ProtoPNet("small", ["cat", "dog"], 1, 8)
    >>> network.readout().shape
    torch.Size([2, 2])
    """

    class_names: tuple[str, ...]
    in_channels: int  # of the images
    prototypes: Any  # (P, L), a tensor or parameter
    prototype_classes: Any  # (P,), a tensor: the class of each, NO_CLASS for a prototype of none
    sources: list[PrototypeSource | None]  # None: never projected
    similarity: str  # "linear": minus the distance; any other name: another function of it
    activation: str  # of latent values: for "relu1" and "sigmoid" distances are at most L, for "unit" 4
    encoder_name: str | None
    training: bool

    def distance_maps(self, x: Tensor) -> Tensor:
        """Distances of every prototype at every position, (B, P, h, w).

        Args:
            x: images (B, C, H, W), normalized
        """

    def distances(self, x: Tensor) -> Tensor:
        """The smallest distance of each prototype, (B, P).

        Args:
            x: images (B, C, H, W), normalized
        """

    def similarities(self, distances: Tensor) -> Tensor:
        """What outputs are sums of.

        Args:
            distances: of any shape
        """

    def readout(self) -> Tensor | None:
        """The weights of those sums, (C, P), without gradient; None where outputs are no such sums."""

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """The outputs, (B, C).

        Args:
            distances: (B, P)
            rows: (n, P), in the place of the weights where outputs are sums: (B, n) then
        """

    def __call__(self, x: Tensor) -> Tensor:
        """The logits of images, (B, C)."""

    def state_dict(self) -> Any:
        """All tensors by name, as of any module: their hash is the network's name in caches."""

    def eval(self) -> Any:
        """Evaluation mode, as of any module."""

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Another device, as of any module.

        Args:
            args: of `torch.nn.Module.to`
            kwargs: of `torch.nn.Module.to`
        """


FAMILIES: Registry[Callable[..., PrototypeNetwork]] = Registry("family of networks")
"""Families by name. Each takes an encoder and classes first, then how many prototypes it has (per class; the
depth of a tree) and their channels."""


def family_name(kind: type) -> str | None:
    """The name that a class is registered by; None where it is no family.

    Args:
        kind: the class of a network

    >>> from protopfaith.network import ProtoPNet
    >>> family_name(ProtoPNet)
    'protopnet'
    """
    return next((name for name, family in FAMILIES.items() if family is kind), None)


PARTS = (
    "class_names",
    "in_channels",
    "prototypes",
    "prototype_classes",
    "sources",
    "similarity",
    "activation",
    "encoder_name",
)
OUTCOMES = ("one", "several")
SUMS = 1e-3  # of the sizes of all terms: by what outputs may differ from their sum
METHODS = ("distance_maps", "distances", "similarities", "readout", "logits", "state_dict", "eval", "to")


def check_contract(network: Any) -> None:
    """Raises if a network lacks something that explanations ask for; computes nothing on images.

    Args:
        network: what should be a prototype network

    Raises:
        ProtoPFaithError: that says what is missing

    >>> from torch import nn
    >>> from protopfaith.network import ProtoPNet
    >>> check_contract(ProtoPNet("small", ["cat", "dog"], 1, 8))
    >>> check_contract(nn.Flatten())
    Traceback (most recent call last):
    ...
    protopfaith.errors.ProtoPFaithError: Flatten is no prototype network: it has no class_names, ...
    """
    name = type(network).__name__
    missing = _missing(network)
    if missing:
        parts = network.named_children() if isinstance(network, nn.Module) else ()
        inside = next((part for part, module in parts if not _missing(module)), None)
        raise ProtoPFaithError(
            f"{name} is no prototype network: it has no {', '.join(missing)}; "
            + (
                "protopfaith.network.PrototypeNetwork says what one has, and explain_function explains any "
                "other network."
                if inside is None
                else f"its part {inside!r} is one: give that."
            )
        )
    if outcome_of(network) not in OUTCOMES:
        raise ProtoPFaithError(
            f"{name} has the outcome {outcome_of(network)!r}; expected 'one' (class) or 'several' (findings)."
        )
    count, classes = len(network.prototypes), len(network.class_names)
    instance(network, nn.Module, "The network", "a prototype network")
    weights = network.readout()
    shapes = {
        "prototype_classes": (tuple(network.prototype_classes.shape), (count,)),
        "readout()": ((classes, count) if weights is None else tuple(weights.shape), (classes, count)),
        "sources": ((len(network.sources),), (count,)),
    }
    for part, (found, expected) in shapes.items():
        if found != expected:
            raise ProtoPFaithError(
                f"{name} has {count} prototypes of {classes} classes, but its {part} has the shape {found} "
                f"and not {expected}; correct it."
            )
    # Other number formats, and weights that are nowhere, are told where something is computed.
    if weights is not None and not weights.is_meta and weights.dtype in (torch.float32, torch.float64):
        _check_sums(network, weights.detach())


@torch.no_grad()
def _check_sums(network: PrototypeNetwork, weights: Tensor) -> None:
    """Raises if outputs are not the sums that `readout` says: what prototypes add would not add up to them.
    Weights that are no numbers are told by whoever computes with them."""
    distances = torch.linspace(0.1, 1.0, weights.shape[1]).to(network.prototypes)[None]
    similarities, weights = network.similarities(distances), weights.to(distances)
    scale = (similarities.abs() @ weights.abs().T).max()
    for call, rows in (("logits(distances)", None), ("logits(distances, rows)", weights[:1])):
        found = network.logits(distances) if rows is None else network.logits(distances, rows)
        expected = similarities @ (weights if rows is None else rows).T
        if found.shape != expected.shape or (found - expected).abs().max() > SUMS * scale:
            raise ProtoPFaithError(
                f"{call} of {type(network).__name__} gives other numbers than the similarities times "
                f"{'readout()' if rows is None else 'the rows'}; correct it, or have readout() give None "
                "where outputs are no such sums."
            )


def _missing(network: Any) -> list[str]:
    """What it lacks of the contract."""
    missing = [part for part in PARTS if not hasattr(network, part)]
    return missing + [part for part in METHODS if not callable(getattr(network, part, None))]


def adds_up(network: PrototypeNetwork) -> bool:
    """Whether outputs are weighted sums of similarities.

    Args:
        network: any family's

    >>> from protopfaith.network import ProtoPNet
    >>> adds_up(ProtoPNet("small", ["cat", "dog"], 1, 8))
    True
    """
    instance(network, nn.Module, "The network", "a prototype network")
    return network.readout() is not None


def weights_of(network: PrototypeNetwork) -> Tensor:
    """The weights (C, P) with which similarities add up to logits; raises where they do not.

    Args:
        network: any family's

    Raises:
        ProtoPFaithError: if outputs are no weighted sums

    >>> from protopfaith.network import ProtoPNet
    >>> weights_of(ProtoPNet("small", ["cat", "dog"], 1, 8)).shape
    torch.Size([2, 2])
    """
    instance(network, nn.Module, "The network", "a prototype network")
    weights = network.readout()
    if weights is None:
        raise ProtoPFaithError(
            f"The outputs of a {type(network).__name__} are no weighted sums of similarities, so there are "
            "no weights of its prototypes; explain the output itself, or the distances."
        )
    return weights.detach()  # a network of somebody else may give what it learns


def route_of(network: PrototypeNetwork, distances: Tensor) -> Route | None:
    """The way of an image through a tree, from its distances (P,); None where the network is no tree.

    Args:
        network: any family's
        distances: of one image, (P,)

    >>> import torch
    >>> from protopfaith.network import ProtoPNet
    >>> route_of(ProtoPNet("small", ["cat", "dog"], 1, 8), torch.zeros(2)) is None
    True
    """
    instance(network, nn.Module, "The network", "a prototype network")
    tensor(distances, "Distances", "one per prototype", 1)
    route = getattr(network, "route", None)
    return route(distances) if callable(route) else None


def can_drop(network: PrototypeNetwork) -> bool:
    """Whether single prototypes of a network can go: then it has `keep`.

    Args:
        network: any family's

    >>> from protopfaith.network import ProtoPNet
    >>> can_drop(ProtoPNet("small", ["cat", "dog"], 1, 8))
    True
    """
    instance(network, nn.Module, "The network", "a prototype network")
    return callable(getattr(network, "keep", None))


def class_of(network: PrototypeNetwork, prototype: int) -> str:
    """The name of a prototype's class; nothing where it belongs to none.

    Args:
        network: any family's
        prototype: its index

    >>> from protopfaith.network import ProtoPNet
    >>> class_of(ProtoPNet("small", ["cat", "dog"], 1, 8), 1)
    'dog'
    """
    instance(network, nn.Module, "The network", "a prototype network")
    number = whole_number(prototype, "The prototype", least=0, most=len(network.prototypes) - 1)
    label = int(network.prototype_classes[number])
    return "" if label == NO_CLASS else network.class_names[label]
