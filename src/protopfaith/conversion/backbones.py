"""Which encoder a set of named tensors belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS
from protopfaith.network.encoders.adapt import differences

FAMILIES = {
    "layer1.": (
        "resnet50",
        "resnet34",
        "resnet18",
        "resnet101",
        "resnet152",
        "wide_resnet50_2",
        "resnext50_32x4d",
        "wide_resnet101_2",
        "resnext101_32x8d",
    ),
    "features.denseblock1.": ("densenet121", "densenet161", "densenet169", "densenet201"),
    "features.0.": ("vgg19", "vgg16", "vgg13", "vgg11", "vgg19_bn", "vgg16_bn", "vgg13_bn", "vgg11_bn"),
}
"""By how the names of their tensors begin; the names are torchvision's."""
IMAGES = (1, 3)  # channels
OLD_DENSENET = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.(\d)\.")


def find_encoder(state: Mapping[str, Tensor], path: Path | str) -> str:
    """The name of the encoder whose tensors have these names and shapes.

    Args:
        state: named as torchvision names them
        path: of the file, for the error
    """
    if in_channels(state) not in IMAGES:
        raise ProtoPFaithError(
            f"The encoder in {path} takes images of {in_channels(state)} channels; convert a network of gray "
            "or color images, which have 1 or 3."
        )
    for start, names in FAMILIES.items():
        if not any(key.startswith(start) for key in state):
            continue
        for name in names:
            if not encoder_differences(name, state):
                return name
    some = ", ".join(list(state)[:3]) or "nothing"
    raise ProtoPFaithError(
        f"The encoder in {path} is none of torchvision's VGG, ResNet or DenseNet networks (it has {some}, "
        "...); convert a network with one of these."
    )


def encoder_differences(name: str, state: Mapping[str, Tensor]) -> str:
    """What keeps `state` from filling the encoder `name`: empty if nothing does."""
    channels = in_channels(state)
    if channels not in IMAGES:
        return f"its first convolution takes images of {channels} channels instead of 1 or 3"
    with torch.device("meta"):  # no memory is taken for what may not fit
        outline = ENCODERS[name](channels, None).state_dict()
    return differences(state, outline)


def in_channels(state: Mapping[str, Tensor]) -> int:
    """Of the first convolution; 3 where there is none."""
    return next((tensor.shape[1] for tensor in state.values() if tensor.dim() == 4), 3)


def modern_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a DenseNet of old versions of torchvision (`norm.1`) under later names (`norm1`)."""
    return {OLD_DENSENET.sub(r"\1\2.", key): tensor for key, tensor in state.items()}
