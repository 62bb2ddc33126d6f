"""What was understood of somebody's network, whatever file it came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.arguments import odd_kind, shown
from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PatchNetwork, ProtoPNet, ProtoTree
from protopfaith.network.branches import Branches


@dataclass(frozen=True)
class SourceHint:
    """Where a prototype comes from, as its authors' files say: the number of an image, in the order of
    torchvision's ImageFolder, and the latent position where that is known.

    Args:
        image: its number
        row: of the latent position, where it is known
        column: of the latent position, where it is known

    >>> SourceHint(17).image
    17
    """

    image: int
    row: int | None = None
    column: int | None = None


@dataclass(frozen=True, eq=False)
class ForeignNetwork:
    """A ProtoPNet or a ProtoTree of another program, with its prototypes in its own order.

    Args:
        format: what it came in, for people
        encoder: a name of `protopfaith.network.ENCODERS`
        encoder_state: its tensors by name
        layers: of Z, as ProtoPNet takes them
        convolutions: weight and bias of each convolution of Z
        prototypes: (P, D)
        owners: (P,), the class of each prototype, -1 in a tree
        weights: (C, P), of the last layer; (C, 0) of a tree
        similarity: "log" or "linear"; "exponential" of a tree
        epsilon: of the log similarity
        preprocessing: how images are prepared
        hints: where prototypes come from, by their numbers
        notes: sentences on what was assumed
        branches: the shape of a tree, whose nodes have the prototypes in this order
        leaves: (leaves, C), whose softmax is the distribution of a tree's leaf

    >>> from protopfaith.network import build_encoder
    >>> network = ForeignNetwork(
    ...     "mine", "small", dict(build_encoder("small").state_dict()), [8, "sigmoid"],
    ...     [(torch.rand(8, 96, 1, 1), torch.zeros(8))], torch.rand(2, 8), torch.tensor([0, 1]), torch.eye(2),
    ...     similarity="linear", epsilon=None, preprocessing=Preprocessing((48, 48)),
    ... )
    >>> build(network, ["cat", "dog"]).class_names
    ('cat', 'dog')
    """

    format: str
    encoder: str
    encoder_state: dict[str, Tensor]
    layers: list[int | str]
    convolutions: list[tuple[Tensor, Tensor]]
    prototypes: Tensor
    owners: Tensor
    weights: Tensor
    similarity: str
    epsilon: float | None
    preprocessing: Preprocessing
    hints: dict[int, SourceHint] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    branches: Branches | None = None
    leaves: Tensor | None = None

    @property
    def order(self) -> Tensor:
        """The prototypes class by class, as this package keeps them."""
        return self.owners.argsort(stable=True)

    def __repr__(self) -> str:
        counts = f"{len(self.weights)} classes, {len(self.prototypes)} prototypes"
        return f"ForeignNetwork({self.format}: {self.encoder}, {counts})"


def plain_numbers(state: Mapping[str, Tensor], path: object) -> dict[str, Tensor]:
    """The same tensors as float32, whatever numbers a file has them in; raises if one has none to compute
    with."""
    for name, values in state.items():
        kind = odd_kind(values)
        if kind:
            raise ProtoPFaithError(
                f"The tensor {shown(name)} in {path} is {kind}, and only real numbers can be converted; save "
                "the network with plain float32 tensors."
            )
    return {name: values.float() for name, values in state.items()}


def check_owners(owners: Tensor, classes: int, path: object) -> None:
    """Raises if a class has no prototype."""
    empty = sorted(set(range(classes)) - set(owners.tolist()))
    if empty:
        raise ProtoPFaithError(
            f"The classes {', '.join(map(str, empty[:5]))} of {path} have no prototype, so nothing could be "
            "shown for them; convert a network in which every class has one."
        )


def build(network: ForeignNetwork, classes: list[str]) -> PatchNetwork:
    """The network as one of ours, in evaluation mode.

    Args:
        network: what was understood
        classes: their names
    """
    model = _net(network, classes) if network.branches is None else _tree(network, classes)
    model.encoder.load_state_dict(network.encoder_state, strict=False)  # what may be missing are counters
    convolutions = [layer for layer in model.features if isinstance(layer, torch.nn.Conv2d)]
    with torch.no_grad():
        for layer, (weight, bias) in zip(convolutions, network.convolutions, strict=True):
            assert layer.bias is not None
            _fill(layer.weight, weight, "weights")
            _fill(layer.bias, bias, "a bias")
        model.prototypes.copy_(network.prototypes[network.order])
    return model.eval()


def _fill(parameter: Tensor, values: Tensor, what: str) -> None:
    """Copies numbers of the same shape; another one would be stretched, or end in a sentence of torch."""
    if values.shape != parameter.shape:
        raise ProtoPFaithError(
            f"A convolution after the encoder has {what} of shape {shown(tuple(values.shape))} in the file, "
            f"where {shown(tuple(parameter.shape))} would fit the layers around it; use another copy of it."
        )
    parameter.copy_(values)


def _net(network: ForeignNetwork, classes: list[str]) -> ProtoPNet:
    model = ProtoPNet(
        network.encoder,
        classes,
        torch.bincount(network.owners, minlength=len(classes)).tolist(),
        network.prototypes.shape[1],
        in_channels=network.preprocessing.channels,
        similarity=network.similarity,
        epsilon=network.epsilon,
        layers=network.layers,
    )
    with torch.no_grad():
        model.classifier.weight.copy_(network.weights[:, network.order])
    return model


def _tree(network: ForeignNetwork, classes: list[str]) -> ProtoTree:
    assert network.branches is not None
    assert network.leaves is not None
    model = ProtoTree(
        network.encoder,
        classes,
        prototype_channels=network.prototypes.shape[1],
        in_channels=network.preprocessing.channels,
        layers=network.layers,
        tree=network.branches.children,
    )
    with torch.no_grad():
        model.leaves.copy_(network.leaves)
    return model


def check_convolution(weight: Tensor, bias: Tensor | None, path: Path | str) -> tuple[Tensor, Tensor]:
    """A 1x1 convolution of Z with its bias, zeros where it has none; raises if it is anything else."""
    if weight.dim() != 4 or weight.shape[2:] != (1, 1):
        raise ProtoPFaithError(
            f"An add-on layer in {path} has weights of shape {shown(tuple(weight.shape))}; only 1 x 1 "
            "convolutions can be converted."
        )
    return weight, torch.zeros(len(weight)) if bias is None else bias
