"""Encoders with twice as many positions, to try whether prototypes are better on a finer map.

    protopfaith --import upsampled train cub_quick --root data model.encoder=resnet50_v1_up2 ...

(with `PYTHONPATH=benchmarks`). The features of 7 x 7 positions are interpolated to 14 x 14 before Z.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import interpolate

from protopfaith.network import ENCODERS
from protopfaith.network.encoders.adapt import Wrapped


class Upsampled(Wrapped):
    """An encoder whose feature map is interpolated to twice its height and width."""

    def forward(self, images: Tensor) -> Tensor:
        return interpolate(self.network(images), scale_factor=2, mode="bilinear", align_corners=False)


@ENCODERS.register("resnet50_v1_up2")
def resnet50_v1_up2(in_channels: int = 3, weights: str | None = None) -> nn.Module:
    return Upsampled(ENCODERS["resnet50_v1"](in_channels, weights))
