"""What was understood of somebody's network, whatever file it came in."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet


@dataclass(frozen=True)
class SourceHint:
    """Where a prototype comes from, as its authors' files say: the number of an image, in the order of
    torchvision's ImageFolder, and the latent position where that is known."""

    image: int
    row: int | None = None
    column: int | None = None


@dataclass(frozen=True, eq=False)
class ForeignNetwork:
    """A ProtoPNet of another program, with its prototypes in its own order."""

    format: str
    encoder: str  # a name of `ENCODERS`
    encoder_state: dict[str, Tensor]
    layers: list[int | str]  # of Z, as ProtoPNet takes them
    convolutions: list[tuple[Tensor, Tensor]]  # weight and bias of each convolution of Z
    prototypes: Tensor  # (P, D)
    owners: Tensor  # (P,): the class of each
    weights: Tensor  # (C, P): of F
    similarity: str
    epsilon: float | None
    preprocessing: Preprocessing
    hints: dict[int, SourceHint] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # sentences on what was assumed

    @property
    def order(self) -> Tensor:
        """The prototypes class by class, as this package keeps them."""
        return self.owners.argsort(stable=True)

    def __repr__(self) -> str:
        return f"ForeignNetwork({self.format}: {self.encoder}, {tuple(self.weights.shape)})"


def check_owners(owners: Tensor, classes: int, path: object) -> None:
    """Raises if a class has no prototype."""
    empty = sorted(set(range(classes)) - set(owners.tolist()))
    if empty:
        raise ProtoPFaithError(
            f"The classes {', '.join(map(str, empty[:5]))} of {path} have no prototype, so nothing could be "
            "shown for them; convert a network in which every class has one."
        )


def build(network: ForeignNetwork, classes: list[str]) -> ProtoPNet:
    """The network as one of ours, in evaluation mode.

    Args:
        network: what was understood
        classes: their names
    """
    counts = torch.bincount(network.owners, minlength=len(classes)).tolist()
    model = ProtoPNet(
        network.encoder,
        classes,
        counts,
        network.prototypes.shape[1],
        in_channels=network.preprocessing.channels,
        similarity=network.similarity,
        epsilon=network.epsilon,
        layers=network.layers,
    )
    model.encoder.load_state_dict(network.encoder_state, strict=False)  # what may be missing are counters
    convolutions = [layer for layer in model.features if isinstance(layer, torch.nn.Conv2d)]
    with torch.no_grad():
        for layer, (weight, bias) in zip(convolutions, network.convolutions, strict=True):
            layer.weight.copy_(weight)
            assert layer.bias is not None
            layer.bias.copy_(bias)
        model.prototypes.copy_(network.prototypes[network.order])
        model.classifier.weight.copy_(network.weights[:, network.order])
    return model.eval()
