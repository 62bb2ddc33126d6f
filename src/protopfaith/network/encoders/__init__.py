"""V: encoders that turn an image into a feature map, found by name or given as a module."""

from protopfaith.network.encoders import convolutional, residual  # noqa: F401  (they register themselves)
from protopfaith.network.encoders.lookup import ENCODERS, build_encoder, output_channels

__all__ = ["ENCODERS", "build_encoder", "output_channels"]
