"""The data set on disk: parts that are whole or absent, and rows of parts that are not finished yet.

Part k holds the images from k times `PART` on, whoever explains them: shards and workers need no lock,
because no two of them have the same part, and the result does not depend on who did what. Where a shard was
started twice, both make the same rows: the first to have all of a part writes it, the other leaves it alone.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from protopfaith.arguments import instance, named, shown, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.arrow import pyarrow_module
from protopfaith.explanation.bulk.facts import check_facts
from protopfaith.explanation.bulk.schema import FORMAT, check_part, check_values, completed, schema
from protopfaith.files import is_file, read_json, reason
from protopfaith.writing import MANIFEST, atomic, check_free

if TYPE_CHECKING:
    import pandas as pd

PART = 64  # images
OPEN = "_open"  # rows of parts that are not finished


@dataclass(frozen=True)
class Manifest:
    """What every part of a data set has in common.

    Args:
        images: how many there are in the list
        items: fingerprint of the list
        key: fingerprint of network and settings
        classes: of the network
        settings: how rows are computed, for people
        weights: fingerprint of the network
        size: height and width that the network sees
        window: rows and columns of a region in pixels; None where regions are the images' own
        threads: of a CPU, which rounding depends on
    """

    images: int
    items: str
    key: str
    classes: tuple[str, ...]
    settings: dict[str, Any]
    weights: str
    size: tuple[int, int]
    window: tuple[int, int] | None
    threads: int

    @property
    def parts(self) -> int:
        return -(-self.images // PART)

    @property
    def regions(self) -> int | None:
        """Of an image; None where each has its own."""
        if self.window is None:
            return None
        return math.prod(-(-side // step) for side, step in zip(self.size, self.window, strict=True))

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **vars(self)}, indent=1, sort_keys=True)

    def schema(self) -> Any:
        more = {"size": self.size, "window": self.window, "images": self.images}
        return schema(self.classes, more)


@dataclass(frozen=True)
class Bulk:
    """A data set of explanations.

    Args:
        folder: with its parts
        manifest: what they have in common

    >>> from tempfile import mkdtemp
    >>> from protopfaith.explanation import explain_bulk
    >>> bulk = explain_bulk("runs/birds", ["bird.png"], mkdtemp(), players=16, budget=64)
    >>> bulk.is_finished(), bulk.frame()["image"].tolist()
    (True, ['bird.png'])
    """

    folder: Path
    manifest: Manifest

    def __repr__(self) -> str:
        return f"Bulk({str(self.folder)!r}, {self.manifest.images:,} images)"

    def part(self, number: int) -> Path:
        """The file of a part.

        Args:
            number: which part, from 0
        """
        whole_number(number, "The number of a part", least=0, most=max(self.manifest.parts - 1, 0))
        return self.folder / f"part-{number:06d}.parquet"

    def finished_parts(self) -> list[int]:
        """Numbers of the parts that are there."""
        # By what is there: a damaged manifest may speak of any number of images.
        names = (path.stem.removeprefix("part-") for path in self.folder.glob("part-*.parquet"))
        numbers = sorted({int(name) for name in names if name.isdecimal()})
        return [one for one in numbers if one < self.manifest.parts and is_file(self.part(one))]

    def is_finished(self) -> bool:
        """Whether all images have a row."""
        return len(self.finished_parts()) == self.manifest.parts

    def table(self, columns: Sequence[str] | None = None) -> Any:
        """All rows of finished parts as an Arrow table, in the order of the list.

        Args:
            columns: which ones; all by default
        """
        pa, parquet = pyarrow_module(), pyarrow_module("parquet")
        read = [self._read(parquet, number, columns) for number in self.finished_parts()]
        if read:
            return pa.concat_tables(read)
        empty = self.manifest.schema().empty_table()
        return empty if columns is None else empty.select(list(columns))

    def _read(self, parquet: Any, number: int, columns: Sequence[str] | None) -> Any:
        path = self.part(number)
        try:
            with parquet.ParquetFile(path, page_checksum_verification=True) as file:
                check_part(file, self._schema, len(self.positions(number)))
                table = file.read(columns=None if columns is None else list(columns))
            table = completed(table, self._schema, columns)
            check_values(table, self.manifest.regions)
            check_facts(table, self.manifest.classes, self.positions(number))
            return table
        except Exception as error:  # whatever a damaged file leads to
            raise ProtoPFaithError(
                f"{path} is no readable part ({reason(error)}); delete it and explain again."
            ) from error

    def frame(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """The same for pandas.

        Args:
            columns: which ones; all by default
        """
        return self.table(columns).to_pandas()

    def failures(self) -> list[tuple[str, str]]:
        """Names of images that could not be explained, and why."""
        table = self.table(["image", "error"])
        pairs = zip(table["image"].to_pylist(), table["error"].to_pylist(), strict=True)
        return [(name, error) for name, error in pairs if error is not None]

    def hard(self) -> int:
        """How many images did not reach the precision that was asked for, within the budget."""
        return sum(reached is False for reached in self.table(["reached"])["reached"].to_pylist())

    def row(self, image: str) -> dict[str, Any]:
        """The row of one image, by its name.

        Args:
            image: as in the column `image`
        """
        instance(image, str, "An image", "a name of the column image")
        parquet = pyarrow_module("parquet")
        close = []
        for number in self.finished_parts():
            names = self._read(parquet, number, ["image"])["image"].to_pylist()
            close += [name for name in names if name.endswith(image)]
            if image in names:
                return self._read(parquet, number, None).slice(names.index(image), 1).to_pylist()[0]
        hint = f"is it {close[0]}?" if close else "give a name of the column image."
        raise ProtoPFaithError(f"There is no image {shown(image)} in {self.folder}; {hint}")

    @cached_property
    def _schema(self) -> Any:
        return self.manifest.schema()

    # Parts that are not finished

    def open_rows(self, number: int) -> dict[int, Path]:
        """Files of the rows of a part that is not finished, by position.

        Args:
            number: which part, from 0
        """
        try:
            files = [path for path in self._open(number).iterdir() if path.suffix == ".parquet"]
        except OSError:  # none yet, or another process is just removing them
            return {}
        return {int(path.stem): path for path in files if path.stem.isdecimal()}

    def _open(self, number: int) -> Path:
        return self.folder / OPEN / self.part(number).stem.removeprefix("part-")

    def keep(self, row: dict[str, Any]) -> None:
        """Keeps one row until its part is finished: an interruption loses only what is being computed.

        Args:
            row: a value for every column
        """
        pa, parquet = pyarrow_module(), pyarrow_module("parquet")
        instance(row, dict, "A row", "a mapping of its columns")
        position = whole_number(row.get("position"), "The position of a row", least=0)
        number = position // PART
        if is_file(self.part(number)):  # another process was faster
            return
        table = pa.Table.from_pylist([row], schema=self._schema)
        folder = self._open(number)
        partial = folder / f".{position:09d}.{uuid4().hex}"  # process numbers repeat on other machines
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Not flushed to the disk, which takes longer: a row that a power cut damages is made again.
            parquet.write_table(table, partial, compression="none")
            partial.replace(folder / f"{position:09d}.parquet")
        except OSError as error:
            if is_file(self.part(number)):  # another process has just finished it and removed the folder
                return
            raise ProtoPFaithError(
                f"Could not write into {self.folder} ({reason(error)}); free some space or check the "
                "permissions, then run the same command again."
            ) from error

    def finish(self, number: int) -> None:
        """Makes a part of its rows; it stays open where some are missing, and as it is where it is whole.

        Args:
            number: which part, from 0
        """
        if not is_file(self.part(number)) and not self._write_part(number):
            return
        shutil.rmtree(self._open(number), ignore_errors=True)
        with suppress(OSError):  # others may not be finished yet
            (self.folder / OPEN).rmdir()

    def _write_part(self, number: int) -> bool:
        """Whether it could: rows may be missing, for another process that wrote the part removes them."""
        pa, parquet = pyarrow_module(), pyarrow_module("parquet")
        rows = self.open_rows(number)
        found = (_read_row(parquet, rows.get(position)) for position in self.positions(number))
        tables = [table for table in found if table is not None]
        if len(tables) < len(self.positions(number)):
            return False
        with atomic(self.part(number)) as partial:
            table = pa.concat_tables(completed(one, self._schema) for one in tables).combine_chunks()
            parquet.write_table(table, partial, compression="zstd", write_page_checksum=True)
        return True

    def missing(self, number: int) -> list[int]:
        """Positions of a part that have no row yet; rows that cannot be read are made again.

        Args:
            number: which part, from 0
        """
        if is_file(self.part(number)):
            return []
        known = self.open_rows(number)
        parquet = pyarrow_module("parquet")
        for position, path in list(known.items()):
            if _read_row(parquet, path) is None:
                path.unlink(missing_ok=True)
                del known[position]
        return [position for position in self.positions(number) if position not in known]

    def positions(self, number: int) -> range:
        """Positions of the images in a part.

        Args:
            number: which part, from 0
        """
        self.part(number)  # is one of ours
        return range(number * PART, min((number + 1) * PART, self.manifest.images))


def _read_row(parquet: Any, path: Path | None) -> Any:
    """A table of one row; None where there is none that can be read."""
    try:
        table = None if path is None else parquet.read_table(path)
    except Exception:  # whatever a damaged file leads to
        return None
    return table if table is not None and table.num_rows == 1 else None


def begin(folder: Path, manifest: Manifest) -> Bulk:
    """Opens a data set to go on with, or begins a new one; raises if it is about something else."""
    if named(folder) != str(folder):  # which Arrow cannot open
        raise ProtoPFaithError(
            f"The name {shown(named(folder))} has characters that cannot be printed; give another as --bulk."
        )
    path = folder / MANIFEST
    if is_file(path):
        there = open_bulk(folder).manifest
        for name, what in DIFFERENCES.items():
            if getattr(there, name) != getattr(manifest, name):
                raise ProtoPFaithError(
                    f"{folder} holds explanations {what}; give another folder as --bulk, or the same request."
                )
        return Bulk(folder, there)
    check_free(folder)
    with atomic(path) as partial:  # several shards write the same
        partial.write_text(manifest.to_json(), encoding="utf-8")
    return Bulk(folder, manifest)


DIFFERENCES = {
    "weights": "of another network",
    "key": "with other settings",
    "items": "of other images or masks, or in another order",
    "images": "of other images",
}


def open_bulk(folder: Path | str) -> Bulk:
    """Opens what `explain_bulk` wrote, finished or not.

    Args:
        folder: of the data set

    >>> from tempfile import mkdtemp
    >>> from protopfaith.explanation import explain_bulk
    >>> folder = mkdtemp()
    >>> _ = explain_bulk("runs/birds", ["bird.png"], folder, players=16, budget=64)
    >>> open_bulk(folder).table(["image", "error"]).to_pylist()
    [{'image': 'bird.png', 'error': None}]
    """
    folder = Path(instance(folder, (str, Path), "A data set of explanations", "its folder"))
    path = folder / MANIFEST
    values = read_json(path, "the folder that explain --bulk wrote")
    try:
        if values.pop("format") != FORMAT:
            raise ValueError("its format is another one")
        if not all(isinstance(values[name], list) for name in ("size", "classes")):
            raise ValueError("its size or its classes are no list")
        sizes: dict[str, Any] = {name: tuple(values.pop(name)) for name in ("size", "classes")}
        window = values.pop("window")
        return Bulk(
            folder, _checked(Manifest(**sizes, window=None if window is None else tuple(window), **values))
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        why = reason(error) if isinstance(error, ValueError) else "its entries are not those that it had"
        raise ProtoPFaithError(f"{path} is damaged ({why}); explain into another folder.") from error


def _checked(manifest: Manifest) -> Manifest:
    kinds: list[tuple[str, Callable[[Any], bool]]] = [
        ("images", lambda value: isinstance(value, int) and 0 < value < 10**12),
        ("classes", lambda value: len(value) > 0 and all(isinstance(name, str) for name in value)),
        ("settings", lambda value: isinstance(value, dict)),
        ("size", _is_size),
        ("window", lambda value: value is None or _is_size(value)),
        ("threads", lambda value: isinstance(value, int) and 0 < value < 10**6),
    ]
    for name, check in kinds:
        if not check(getattr(manifest, name)):
            raise ValueError(f"{name} makes no sense")
    return manifest


def _is_size(value: Any) -> bool:
    return len(value) == 2 and all(isinstance(side, int) and side > 0 for side in value)
