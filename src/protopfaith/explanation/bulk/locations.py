"""Where run and images are, for later reports: a private file, no part of the results."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.arrow import pyarrow_module
from protopfaith.explanation.bulk.inputs import Item
from protopfaith.explanation.explainer import Explainer
from protopfaith.files import is_file, is_folder
from protopfaith.writing import atomic

NAME = "_where.parquet"


def locations_path(folder: Path, *, anonymous: bool) -> Path:
    """In the folder; of anonymous results beside it, as it is their key."""
    return folder.with_name(f"{folder.name}-where.parquet") if anonymous else folder / NAME


def keep_locations(folder: Path, explainer: Explainer, items: Sequence[Item], *, anonymous: bool) -> None:
    """Writes absolute paths of run and images, readable by their owner alone."""
    path = locations_path(folder, anonymous=anonymous)
    if is_file(path):
        return
    pa, parquet = pyarrow_module(), pyarrow_module("parquet")
    run = explainer.run
    known = {
        "run": None if run is None else str(run.folder.absolute()),
        "root": None if run is None or run.root is None else str(Path(run.root).absolute()),
    }
    table = pa.table(
        {
            "image": [item.name for item in items],
            "path": [os.fsencode(Path(item.path).absolute()) for item in items],  # any bytes
            "offset": [item.offset for item in items],
            "size": pa.array([item.size for item in items], pa.int64()),
        }
    ).replace_schema_metadata({"protopfaith": json.dumps(known)})
    with atomic(path) as partial:
        partial.touch(mode=0o600)
        parquet.write_table(table, partial, compression="zstd")


def find_location(folder: Path, name: str) -> tuple[Path | None, Path | None, Item]:
    """The run, the root of its images, and one image."""
    run, root, items = find_locations(folder, [name])
    if name not in items:
        raise _unknown(folder, name)
    return run, root, items[name]


def find_locations(folder: Path, names: Sequence[str]) -> tuple[Path | None, Path | None, dict[str, Item]]:
    """The run, the root of its images, and those of some names that are known; all are read at a time."""
    path = locations_path(folder, anonymous=not is_file(folder / NAME))
    parquet = pyarrow_module("parquet")
    try:
        table = parquet.read_table(path, filters=[("image", "in", list(names))])
        known = json.loads(table.schema.metadata[b"protopfaith"])
        rows = table.to_pylist()
        items = [Item(row["image"], os.fsdecode(row["path"]), row["offset"], row["size"]) for row in rows]
        run, root = (None if known[key] is None else Path(known[key]) for key in ("run", "root"))
    except Exception as error:  # not there, or whatever a damaged file leads to
        raise _unknown(folder, *names[:1]) from error
    root = root if root is None or is_folder(root) else None  # gone since then: missed where it is needed
    return run, root, {item.name: item for item in items}


def _unknown(folder: Path, name: str = "") -> ProtoPFaithError:
    return ProtoPFaithError(f"{folder} does not say where the image {name} lies; give --run and --image.")
