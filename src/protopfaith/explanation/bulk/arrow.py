"""Imports pyarrow, which is an extra; without it an error says how to install it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from protopfaith.errors import ProtoPFaithError


def pyarrow_module(name: str = "") -> Any:
    """`pyarrow`, or a module of it, imported when it is needed.

    Args:
        name: of the module inside it
    """
    try:
        return import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ImportError as error:
        raise ProtoPFaithError(
            "Parquet files need pyarrow; install it with: pip install 'protopfaith[bulk]'."
        ) from error
