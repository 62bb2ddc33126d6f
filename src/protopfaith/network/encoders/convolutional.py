"""The paper's own ConvNet and ResNet for one-channel images, and an encoder for small images on a CPU."""

from __future__ import annotations

from torch import Tensor, nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.network.encoders.lookup import ENCODERS


class Block(nn.Module):
    """conv3x3, BN, ReLU, conv3x3, BN, (+ skip), ReLU; the skip changes shape by a 1x1 convolution and BN."""

    def __init__(self, in_channels: int, channels: int, stride: int = 1, *, skip: bool):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(in_channels, channels, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.skip: nn.Module | None = None
        if skip:
            self.skip = nn.Identity() if in_channels == channels else _change(in_channels, channels, stride)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return self.relu(y if self.skip is None else y + self.skip(x))


def _change(in_channels: int, channels: int, stride: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(in_channels, channels, 1, stride, bias=False),
        nn.BatchNorm2d(channels),
    )


def _stages(in_channels: int, *, skip: bool) -> nn.Sequential:
    """7x7 stride-2 convolution, 3x3 stride-2 max-pooling without padding, one block of 64 channels, then
    three blocks each of 128, 256 and 512."""
    layers = nn.Sequential(
        nn.Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2),
        Block(64, 64, skip=skip),
    )
    for channels in (128, 256, 512):
        layers.append(Block(channels // 2, channels, stride=2, skip=skip))
        layers.extend([Block(channels, channels, skip=skip) for _ in range(2)])
    return initialize(layers)


def initialize(layers: nn.Sequential) -> nn.Sequential:
    """He initialization: convolutions are followed by ReLUs, batch norms start as the identity."""
    for module in layers.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return layers


def _refuse(name: str, published: str | None) -> None:
    if published is not None:
        raise ProtoPFaithError(
            f"There are no published weights {published!r} for the encoder {name!r}: leave weights out "
            "(model.weights=null in a recipe), or pass the path of a file."
        )


@ENCODERS.register("convnet")
def convnet(in_channels: int = 1, published: str | None = None) -> nn.Module:
    """The paper's ConvNet: its ResNet without skips."""
    _refuse("convnet", published)
    return _stages(in_channels, skip=False)


@ENCODERS.register("resnet")
def resnet(in_channels: int = 1, published: str | None = None) -> nn.Module:
    """The paper's ResNet: a ResNet18 with one more block before every change of channels."""
    _refuse("resnet", published)
    return _stages(in_channels, skip=True)


@ENCODERS.register("small")
def small(in_channels: int = 3, published: str | None = None) -> nn.Module:
    """Five convolutions, three of them with stride 2: 96 x 96 pixels become a 12 x 12 map in which a position
    sees 49 x 49 pixels. Made for the embedded data and two CPU cores."""
    _refuse("small", published)
    layers = nn.Sequential()
    for channels, kernel, stride in ((24, 5, 2), (48, 3, 2), (96, 3, 2), (96, 3, 1), (96, 3, 1)):
        layers.extend(
            [
                nn.Conv2d(in_channels, channels, kernel, stride, padding=kernel // 2, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(),
            ]
        )
        in_channels = channels
    return initialize(layers)
