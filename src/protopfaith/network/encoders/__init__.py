"""V: encoders that turn an image into a feature map, found by name or given as a module.

Importing this package registers all encoders in its files.
"""

from protopfaith.network.encoders.lookup import ENCODERS, build_encoder, output_channels
from protopfaith.registry import import_modules

import_modules(__name__, __path__)

__all__ = ["ENCODERS", "build_encoder", "output_channels"]
