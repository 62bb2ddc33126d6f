"""Prototype networks of other programs, made into runs: the original ProtoPNet, CaBRNet.

Importing this package registers all formats in its files.
"""

from protopfaith.conversion.foreign import ForeignNetwork, SourceHint
from protopfaith.conversion.formats import FORMATS, Format
from protopfaith.conversion.run import Conversion, convert
from protopfaith.conversion.unpickling import read_foreign
from protopfaith.registry import import_modules

import_modules(__name__, __path__)

__all__ = [
    "FORMATS",
    "Conversion",
    "ForeignNetwork",
    "Format",
    "SourceHint",
    "convert",
    "read_foreign",
]
