"""The layers between encoder and logits: Z's activation, Z itself, and the similarity that F reads."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from protopfaith.network.distances import unit_vectors
from protopfaith.registry import Registry

ACTIVATIONS: Registry[Callable[[], nn.Module]] = Registry("activation")
SIMILARITIES: Registry[Callable[[Tensor], Tensor]] = Registry("similarity")

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


def own_class_weights(prototype_classes: Tensor, n_classes: int) -> Tensor:
    """F at the start, (C, P): 1 from a prototype to its own class, -0.5 to the others."""
    own = torch.arange(n_classes, device=prototype_classes.device)[:, None] == prototype_classes
    return torch.where(own, 1.0, -0.5)
