"""Packages whose names are imported when they are first used (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package: imports the module that a name lives in when somebody asks for it.

    Args:
        package: its `__name__`
        homes: of each name, the module below the package

    >>> lazily("protopfaith", {"ProtoPFaithError": "errors"})("ProtoPFaithError").__name__
    'ProtoPFaithError'
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next time without this function
        return value

    return find
