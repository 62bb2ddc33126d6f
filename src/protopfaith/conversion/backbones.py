"""Which encoder a set of named tensors belongs to, where it is cut, and where it has its strides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.arguments import shown
from protopfaith.conversion.stubs import parts_of
from protopfaith.conversion.unpickling import Stub
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import build_encoder
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
    try:
        with torch.device("meta"):  # no memory is taken for what may not fit
            outline = build_encoder(name, channels).state_dict()
    except ProtoPFaithError as error:  # it has no layer of the name that it is cut at
        return str(error)
    return differences(state, outline)


def in_channels(state: Mapping[str, Tensor]) -> int:
    """Of the first convolution; 3 where there is none."""
    return next((tensor.shape[1] for tensor in state.values() if tensor.dim() == 4), 3)


def modern_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a DenseNet of old versions of torchvision (`norm.1`) under later names (`norm1`)."""
    return {OLD_DENSENET.sub(r"\1\2.", key): tensor for key, tensor in state.items()}


def named_encoder(
    state: Mapping[str, Tensor], modules: Mapping[str, Stub], asked: str | None, path: Path
) -> str:
    """The encoder with the layer that it is cut at, and the strides that it has.

    Args:
        state: its tensors
        modules: its parts, where the file says them
        asked: the name that the caller gives it
        path: of the file, for errors
    """
    name = find_encoder(state, path)
    if asked is not None:
        return _as_asked(asked, name, state, path)
    if name.startswith("vgg") and "features" in modules:  # the last pooling has no tensors
        return _with_its_last_layer(name, parts_of(modules["features"]))
    if name.startswith("res") and "layer2" in modules:
        return _with_its_stride(name, modules["layer2"], path)
    return name


def _as_asked(asked: str, found: str, state: Mapping[str, Tensor], path: Path) -> str:
    """The encoder as the caller names it: the file's own, perhaps cut at a layer that leaves all its tensors,
    or with its strides elsewhere."""
    own = {found, "resnet50_v1"} if found == "resnet50" else {found}
    if asked.partition("@")[0] in own and not encoder_differences(asked, state):
        return asked
    example = (
        f"{found}@features.{last_layer(found) - 1}" if found.startswith("vgg") else " or ".join(sorted(own))
    )
    raise ProtoPFaithError(
        f"The encoder {shown(asked)} is not that of {path}, whose tensors are those of {found}; name it as "
        f"{example}, or leave --encoder out."
    )


def last_layer(vgg: str) -> int:
    """The number of the last layer, which is the pooling."""
    with torch.device("meta"):
        return len(build_encoder(vgg).get_submodule("features")) - 1  # type: ignore[arg-type]


def _with_its_last_layer(name: str, layers: Mapping[str, Stub]) -> str:
    """VGG, cut where the file's network ends."""
    whole = last_layer(name)
    last = max((int(number) for number in layers if number.isdecimal()), default=whole)
    return name if last == whole else f"{name}@features.{last}"


def _with_its_stride(name: str, stage: Stub, path: Path) -> str:
    """ResNet, with the stride where the file's network has it."""
    block = parts_of(stage).get("0")
    blocks = parts_of(block)
    if "conv3" not in blocks or tuple(vars(blocks["conv1"]).get("stride", ())) != (2, 2):
        return name
    if name != "resnet50":
        raise ProtoPFaithError(
            f"The {name} in {path} has its strides in the 1 x 1 convolutions, as the first version; only "
            "that of resnet50 can be converted."
        )
    return "resnet50_v1"
