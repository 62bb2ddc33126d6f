"""Results on disk: computed once for the same settings, whole or absent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from protopfaith.npz import read_npz
from protopfaith.writing import atomic

Record = dict[str, np.ndarray]


class Store:
    """A folder of `.npz` files, each with the settings that it was computed with.

    `common` are settings that decide everything in the folder, such as the network's fingerprint.
    """

    def __init__(self, folder: Path | str, common: Mapping[str, Any]):
        self.folder, self.common = Path(folder), dict(common)

    def once(
        self, name: str, settings: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]]
    ) -> Record:
        """What `compute` gives, or gave: read from the file if it was written with the same settings."""
        path, key = self.folder / f"{name}.npz", self.key(settings)
        known = _read(path, key)
        if known is not None:
            return known
        record = {name: np.asarray(value) for name, value in compute().items()}
        with atomic(path) as partial, partial.open("wb") as file:
            np.savez_compressed(file, __key__=np.array(key), **record)  # type: ignore[arg-type]
        return record

    def has(self, name: str, settings: Mapping[str, Any]) -> bool:
        """Whether `once` would find it."""
        return _read(self.folder / f"{name}.npz", self.key(settings)) is not None

    def key(self, settings: Mapping[str, Any]) -> str:
        text = json.dumps({**self.common, **settings}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path, key: str) -> Record | None:
    try:
        record = read_npz(path)
        return record if str(record.pop("__key__")) == key else None
    except Exception:  # not there, or not readable, whatever a damaged archive leads to: computed again
        return None
