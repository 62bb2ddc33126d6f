"""The ImageNet encoders of the paper, and the original (v1) ResNet50."""

from __future__ import annotations

from torch import nn

from protopfaith.network.encoders.libraries import torchvision_encoder
from protopfaith.network.encoders.lookup import ENCODERS


@ENCODERS.register("resnet50")
def resnet50(in_channels: int = 3, published: str | None = None) -> nn.Module:
    """ResNet50 as torchvision has it."""
    return torchvision_encoder("resnet50", in_channels, published)


@ENCODERS.register("resnext50_32x4d")
def resnext50(in_channels: int = 3, published: str | None = None) -> nn.Module:
    """ResNeXt50 (32x4d) as torchvision has it."""
    return torchvision_encoder("resnext50_32x4d", in_channels, published)


@ENCODERS.register("wide_resnet50_2")
def wide_resnet50(in_channels: int = 3, published: str | None = None) -> nn.Module:
    """Wide ResNet50-2 as torchvision has it."""
    return torchvision_encoder("wide_resnet50_2", in_channels, published)


@ENCODERS.register("resnet50_v1")
def resnet50_v1(in_channels: int = 3, published: str | None = None) -> nn.Module:
    """ResNet50 as first published: a stage's stride sits in its first 1x1 convolution, torchvision moved it
    into the 3x3. Weights of the one work in the other with a loss; the parameters have the same names."""
    encoder = torchvision_encoder("resnet50", in_channels, published)
    for stage in ("layer2", "layer3", "layer4"):
        block = encoder.get_submodule(f"{stage}.0")
        for convolution, stride in (("conv1", (2, 2)), ("conv2", (1, 1))):
            block.get_submodule(convolution).stride = stride  # type: ignore[assignment]
    return encoder
