"""All data sets by name: files of this package register theirs when they are imported, and here all are."""

from __future__ import annotations

import protopfaith.data as package
from protopfaith.data.registry import DATASETS
from protopfaith.registry import import_modules

import_modules(package.__name__, package.__path__)

__all__ = ["DATASETS"]
