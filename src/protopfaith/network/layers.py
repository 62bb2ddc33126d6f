"""The layers between encoder and logits: Z's activation, Z itself, and the similarity that F reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from protopfaith.arguments import finite_number, instance, shown, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.distances import unit_vectors
from protopfaith.registry import Registry

ACTIVATIONS: Registry[Callable[[], nn.Module]] = Registry("activation")
SIMILARITIES: Registry[Callable[..., Tensor]] = Registry("similarity")
"""From distances to what F reads; those with a parameter `epsilon` may be given another than their own."""
MOST_LAYERS = 64
MOST_CHANNELS = 100_000

ACTIVATIONS.register("sigmoid")(nn.Sigmoid)
ACTIVATIONS.register("relu")(nn.ReLU)


@ACTIVATIONS.register("relu1")
def relu1() -> nn.Module:
    """The paper's ReLU1: clips to [0, 1]."""
    return nn.Hardtanh(0.0, 1.0)


class Unit(nn.Module):
    """Latent vectors of length 1: squared distances are 2 - 2 cos, from 0 to 4."""

    def forward(self, z: Tensor) -> Tensor:
        return unit_vectors(z)


ACTIVATIONS.register("unit")(Unit)


@SIMILARITIES.register("linear")
def linear_similarity(distances: Tensor) -> Tensor:
    """The paper's -s: the logits are linear in the distances."""
    return -distances


@SIMILARITIES.register("log")
def log_similarity(distances: Tensor, epsilon: float = 1e-4) -> Tensor:
    """log((s + 1) / (s + epsilon)) of the original ProtoPNet (Chen et al., 2019)."""
    return torch.log((distances + 1) / (distances + epsilon))


def similarity_function(name: str, epsilon: float | None = None) -> Callable[[Tensor], Tensor]:
    """The similarity `name`, with an `epsilon` of its own where one is given.

    >>> similarity_function("log", 1e-3)(torch.tensor(0.0)).exp().round().item()
    1000.0
    """
    if epsilon is None:
        return SIMILARITIES[name]
    instance(name, str, "The similarity", "the name of one")
    finite_number(epsilon, "The epsilon of a similarity")
    if name == "linear":
        raise ProtoPFaithError("The linear similarity -s has no epsilon; leave it out, or choose log.")
    if not 0 < epsilon < 1:
        raise ProtoPFaithError(
            f"The epsilon of a similarity lies between 0 and 1, but it is {shown(epsilon)}."
        )
    return partial(SIMILARITIES[name], epsilon=epsilon)


def feature_layers(in_channels: int, channels: int, activation: str) -> nn.Sequential:
    """Z: 1x1 convolution to L channels, ReLU, 1x1 convolution L to L, activation.

    He initialization; before ReLU1 the values start around 0.5 at a quarter of that spread. Without it three
    of four lie outside [0, 1], where there is no gradient, and training starts much more slowly.
    """
    first = nn.Conv2d(in_channels, channels, kernel_size=1)
    second = nn.Conv2d(channels, channels, kernel_size=1)
    for convolution in (first, second):
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
    if activation == "relu1":
        with torch.no_grad():
            second.weight.mul_(0.25)
            nn.init.constant_(second.bias, 0.5)  # type: ignore[arg-type]
    return nn.Sequential(first, nn.ReLU(), second, ACTIVATIONS[activation]())


def stacked_layers(in_channels: int, layers: Sequence[int | str]) -> nn.Sequential:
    """Z of another shape: a number is a 1x1 convolution to so many channels, a text an activation.

    >>> stacked_layers(512, [128, "relu", 128, "sigmoid"])[2].weight.shape
    torch.Size([128, 128, 1, 1])
    """
    if not isinstance(layers, (list, tuple)) or len(layers) > MOST_LAYERS:
        raise ProtoPFaithError(
            f"The layers of Z are a list of at most {MOST_LAYERS} numbers of channels and names of "
            f"activations, not {shown(layers)}."
        )
    stack = nn.Sequential()
    for layer in layers:
        if isinstance(layer, str):
            stack.append(ACTIVATIONS[layer]())
        else:
            whole_number(layer, "The number of channels of a layer of Z", least=1, most=MOST_CHANNELS)
            stack.append(nn.Conv2d(in_channels, layer, kernel_size=1))
            in_channels = layer
    return stack


def last_activation(layers: Sequence[int | str]) -> str:
    """The name of what such a Z ends with: an activation, or "none".

    >>> last_activation([128, "sigmoid"]), last_activation([128])
    ('sigmoid', 'none')
    """
    return layers[-1] if layers and isinstance(layers[-1], str) else "none"


def last_channels(in_channels: int, layers: Sequence[int | str]) -> int:
    """The number of channels of the latent vectors that such a Z gives.

    >>> last_channels(512, [128, "sigmoid"]), last_channels(512, [])
    (128, 512)
    """
    return next((layer for layer in reversed(layers) if isinstance(layer, int)), in_channels)


def own_class_weights(prototype_classes: Tensor, n_classes: int) -> Tensor:
    """F at the start, (C, P): 1 from a prototype to its own class, -0.5 to the others."""
    own = torch.arange(n_classes, device=prototype_classes.device)[:, None] == prototype_classes
    return torch.where(own, 1.0, -0.5)
