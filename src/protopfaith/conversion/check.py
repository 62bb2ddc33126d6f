"""Whether a converted network says what the file says: the formulas of its authors, computed the slow way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from protopfaith.conversion.foreign import ForeignNetwork
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PatchNetwork, build_encoder

TOLERANCE = 1e-4
"""Of the largest logit: what the order of additions may change in float32."""


@dataclass(frozen=True)
class Check:
    """The largest differences on one picture, relative to the largest number."""

    distances: float
    logits: float

    def __str__(self) -> str:
        return f"distances agree to {self.distances:.1g} of their size, logits from them to {self.logits:.1g}"


@torch.no_grad()
def check_conversion(network: ForeignNetwork, model: PatchNetwork, image: Tensor) -> Check:
    """Compares the converted network on one image with the tensors of the file; raises if they differ, or are
    not finite.

    Logits are compared for the same distances: near zero, where the log similarity is steep, the rounding of
    a distance would show a hundredfold.

    Args:
        network: what the file holds
        model: what became of it
        image: C x H x W, normalized
    """
    found = model.distances(image[None])
    expected = foreign_distances(network, image[None])[:, network.order]
    logits = foreign_logits(network, found.double()[:, network.order.argsort()])
    if not bool(expected.isfinite().all() and logits.isfinite().all()):
        raise ProtoPFaithError(
            "The tensors of the file give distances or logits that are not finite numbers, as those of a "
            "training that went wrong; use an earlier checkpoint."
        )
    length = float(network.prototypes.square().sum(1).max())  # a distance of zero is a difference of these
    check = Check(_difference(found, expected, length), _difference(model.logits(found), logits))
    if not max(check.distances, check.logits) <= TOLERANCE:  # also where they are not numbers
        raise ProtoPFaithError(
            f"The converted network does not say what the file says ({check}); please report this with the "
            "file's architecture."
        )
    return check


def foreign_distances(network: ForeignNetwork, x: Tensor) -> Tensor:
    """Distances (B, P) by their definition, in float64 after the encoder."""
    encoder = build_encoder(network.encoder, network.preprocessing.channels)
    encoder.load_state_dict(network.encoder_state, strict=False)
    z = encoder.eval()(x).double()
    convolutions = iter(network.convolutions)
    for layer in network.layers:
        if isinstance(layer, str):
            z = z.relu() if layer == "relu" else z.sigmoid()
        else:
            weight, bias = next(convolutions)
            z = conv2d(z, weight.double(), bias.double())
    vectors = z.flatten(2)[:, None]  # one prototype after the other: all at once would be a large tensor
    differences = (vectors - prototype[:, None] for prototype in network.prototypes.double())
    return torch.cat([apart.square().sum(2).amin(2) for apart in differences], dim=1)


def foreign_logits(network: ForeignNetwork, distances: Tensor) -> Tensor:
    """Logits (B, C) by the formulas of the paper; of a tree the log of the mixture, node by node."""
    if network.branches is not None:
        return torch.stack([_mixture(network, row.sqrt().neg().exp().tolist(), 0).log() for row in distances])
    similar = -distances
    if network.similarity == "log":
        assert network.epsilon is not None
        similar = ((distances + 1) / (distances + network.epsilon)).log()
    return similar @ network.weights.double().T


def _mixture(network: ForeignNetwork, right: Sequence[float], place: int) -> Tensor:
    """The class probabilities (C,) below a node, or in a leaf."""
    assert network.branches is not None
    assert network.leaves is not None
    if place < 0:
        return network.leaves[-1 - place].double().softmax(0)
    left, other = network.branches.children[place]
    share = right[place]
    return (1 - share) * _mixture(network, right, left) + share * _mixture(network, right, other)


def _difference(found: Tensor, expected: Tensor, size: float = 1e-12) -> float:
    """The largest difference, relative to the largest number or to `size`."""
    return float((found.double() - expected).abs().max() / expected.abs().max().clamp_min(size))
