"""What explanations ask of a prototype network, whatever its family: little, written down here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import Registry


@dataclass(frozen=True)
class PrototypeSource:
    """The training image and the latent position that a projected prototype is equal to.

    Args:
        image: path relative to the data's root, or the embedded data's id
        row: of the latent position, counted from the top
        column: of the latent position, counted from the left
        sha256: of the image as stored

    >>> PrototypeSource("cats/7.png", row=3, column=5, sha256="e3b0c442").image
    'cats/7.png'
    """

    image: str
    row: int
    column: int
    sha256: str


class PrototypeNetwork(Protocol):
    r"""A network that compares images with prototypes and adds up how similar they are.

    A game on an image x asks for its distances $s_j(x)$ to P prototypes. How outputs follow from them is a
    sum: the logit of class c is $\sum_j a_{cj}\,\sigma(s_j)$, with the similarity $\sigma$ of `similarities`
    and the weights of `readout`. Where each prototype comes from is in `sources`. `ProtoPNet` is one such
    network; one of your own (a module) is explained like it if it has what stands here. `check_contract` says
    what is missing.

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
    prototype_classes: Any  # (P,), a tensor: the class of each
    sources: list[PrototypeSource | None]  # None: never projected
    similarity: str  # "linear": minus the distance; any other name: another function of it
    activation: (
        str  # what latent values end with: for "relu1" and "sigmoid" distances are at most L, for "unit" 4
    )
    encoder_name: str | None
    training: bool

    def distance_maps(self, x: Tensor) -> Tensor:
        """Distances of every prototype at every position, (B, P, h, w), from images (B, C, H, W)."""

    def distances(self, x: Tensor) -> Tensor:
        """The smallest distance of each prototype, (B, P)."""

    def similarities(self, distances: Tensor) -> Tensor:
        """What outputs are sums of, from distances of any shape."""

    def readout(self) -> Tensor:
        """The weights of those sums, (C, P), without gradient."""

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """The sums, (B, C); with `rows` (n, P) in the place of the weights (B, n)."""

    def __call__(self, x: Tensor) -> Tensor:
        """The logits of images, (B, C)."""

    def state_dict(self) -> Any:
        """All tensors by name, as of any module: their hash is the network's name in caches."""

    def eval(self) -> Any:
        """Evaluation mode, as of any module."""

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Another device, as of any module."""


FAMILIES: Registry[Callable[..., PrototypeNetwork]] = Registry("family of networks")
"""Families by name. Each takes an encoder, classes, prototypes per class and channels first, as ProtoPNet."""

PARTS = (
    "class_names",
    "in_channels",
    "prototypes",
    "prototype_classes",
    "sources",
    "similarity",
    "activation",
)
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
    missing = [part for part in PARTS if not hasattr(network, part)]
    missing += [part for part in METHODS if not callable(getattr(network, part, None))]
    if missing:
        some = ", ".join(missing[:4]) + (", ..." if len(missing) > 4 else "")
        raise ProtoPFaithError(
            f"{name} is no prototype network: it has no {some}; protopfaith.network.PrototypeNetwork says "
            "what one has."
        )
    count, classes = len(network.prototypes), len(network.class_names)
    weights = network.readout()
    shapes = {
        "prototype_classes": (tuple(network.prototype_classes.shape), (count,)),
        "readout()": (tuple(weights.shape), (classes, count)),
        "sources": ((len(network.sources),), (count,)),
    }
    for part, (found, expected) in shapes.items():
        if found != expected:
            raise ProtoPFaithError(
                f"{name} has {count} prototypes of {classes} classes, but its {part} has the shape {found} "
                f"and not {expected}; correct it."
            )
