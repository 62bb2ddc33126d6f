"""Families that are trained otherwise than a ProtoPNet: a file or a package for each, found by itself."""

from protopfaith.registry import import_modules

import_modules(__name__, __path__)
