"""What is to be explained: image files, folders and DICOM trees, lists, WebDataset tars; in a fixed order."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from protopfaith.anonymous import public_names
from protopfaith.arguments import named, shown, some_of
from protopfaith.data.frames import split_frame
from protopfaith.data.images import LISTS, SUFFIXES, is_dicom, looks_like_image, say_once
from protopfaith.data.listing import CASE
from protopfaith.data.table import FILES, read_cells
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.arrow import pyarrow_module
from protopfaith.files import is_file, is_folder, is_run, reason, refuse_run

logger = logging.getLogger("protopfaith")

BOX = ("left", "top", "right", "bottom")
MASK = "mask"
READ = (*FILES, *BOX, MASK)  # columns of a list
NUMBERED = "There is no image where the list says, whose paths count from its own folder; correct the list."
MOST_MEMBER = 1 << 30  # bytes of one file in a tar

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Item:
    """One image: a file, or a part of a tar.

    Args:
        name: what it is called in results; different for every image
        path: of the file
        offset: where it begins, in a tar
        size: its bytes, in a tar; None for a file of its own
        boxes: around the objects in pixels of the image (left, top, right, bottom), where a list says so
        masks: paths of images that are not zero where objects are, where a list says so
        mask_names: what a list calls them, without folders of this machine
        missing: what to say of a file that a list names and that is not there
        anonymous: nothing in results may tell which file it is, nor what its content is
    """

    name: str
    path: str
    offset: int = 0
    size: int | None = None
    boxes: tuple[Box, ...] = ()
    masks: tuple[str, ...] = ()
    mask_names: tuple[str, ...] = ()
    missing: str = ""
    anonymous: bool = False

    @contextmanager
    def file(self) -> Iterator[Path]:
        """The image as a file of its own, while it is read."""
        if self.missing and not split_frame(self.path)[0].exists():
            raise ProtoPFaithError(self.missing)
        if self.size is None:
            yield Path(self.path)
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"image{Path(self.name).suffix}"
            copy.write_bytes(self.content())
            yield copy

    def content(self) -> bytes:
        """The bytes of the image file."""
        with Path(self.path).open("rb") as file:
            file.seek(self.offset)
            return file.read() if self.size is None else file.read(self.size)


def list_items(inputs: Sequence[Path | str], *, anonymous: bool = False) -> list[Item]:
    """All images that the inputs stand for, in the same order every time.

    Args:
        inputs: image files, folders (with DICOM files of any name), CSV, TSV or Parquet lists with a column
            `file` and one row per image, box or mask, tars as WebDataset has them
        anonymous: numbers instead of names

    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "b.png").write_bytes(b""), (folder / "a.png").write_bytes(b"")
    >>> [item.name for item in list_items([folder])]
    ['a.png', 'b.png']
    """
    items = [list(_items(Path(one), alone=len(inputs) == 1)) for one in inputs]
    found = [item for several in items for item in several]
    without = some_of(named(one) for one, several in zip(inputs, items, strict=True) if not several)
    if not found:
        raise ProtoPFaithError(
            f"There are no images in {without}; give image files, folders, lists or tars that hold some."
        )
    if without:
        logger.warning("There are no images in %s.", without)
    unique = _together(found)
    names = public_names([_place(item) for item in unique], anonymous=anonymous)
    if anonymous:
        unique = [replace(one, missing=NUMBERED if one.missing else "", anonymous=True) for one in unique]
    return [replace(item, name=_printable(name)) for name, item in zip(names, unique, strict=True)]


def _together(items: Sequence[Item]) -> list[Item]:
    """Every image once, with the boxes and masks of all its rows: lists have one row per object."""
    boxes: dict[tuple[str, int], dict[Box, None]] = {}
    masks: dict[tuple[str, int], dict[str, str]] = {}
    for item in items:
        boxes.setdefault((item.path, item.offset), {}).update(dict.fromkeys(item.boxes))
        masks.setdefault((item.path, item.offset), {}).update(zip(item.masks, item.mask_names, strict=True))
    unique = {(item.path, item.offset): item for item in items}
    return [
        replace(
            item,
            boxes=tuple(boxes[place]),
            masks=tuple(masks[place]),
            mask_names=tuple(masks[place].values()),
        )
        for place, item in unique.items()
    ]


def _printable(name: str) -> str:
    """A name that is no UTF-8 with its bytes spelled out: Parquet has no place for them."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def list_fingerprint(items: Sequence[Item]) -> str:
    """Changes with the images that are listed, with their masks and with their order."""
    digest = hashlib.sha256()
    for item in items:
        masks = "".join(f"\0{Path(mask).name}" for mask in item.masks)  # folders differ between machines
        digest.update(f"{item.name}\0{item.size}{masks}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _place(item: Item) -> Path:
    """A path that tells an image apart from all others: that of its file, or below that of its tar."""
    return Path(item.path) if item.size is None else Path(item.path) / item.name


def _items(path: Path, *, alone: bool) -> Iterator[Item]:
    if is_folder(path):
        refuse_run(path)
        yield from (Item(file.name, str(file)) for file in _images_below(path))
    elif path.suffix.lower() in LISTS:
        yield from _from_list(path)
    elif path.suffix.lower() == ".tar":
        yield from _told_apart(_from_tar(path))
    elif path.name.lower().endswith((".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz")):
        raise ProtoPFaithError(
            f"{path} is a compressed tar, in which images cannot be found; unpack it to .tar."
        )
    elif is_file(split_frame(path)[0]) or (not alone and path.suffix.lower() in SUFFIXES):
        # a missing one is a bad row
        yield Item(path.name, str(path))
    else:
        raise ProtoPFaithError(f"There is no image, folder, list or tar {path}; check the path.")


def _images_below(folder: Path) -> Iterator[Path]:
    """Image and DICOM files, sorted; what is hidden, and results of ours, is left out. Not all at once in
    memory: a tree of a million files is walked folder by folder."""
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if CASE in names or is_run(Path(top)):
            folders[:] = []
            continue
        for name in sorted(names):
            path = Path(top) / name
            if name.startswith(".") or not is_file(path):
                continue
            if path.suffix.lower() in SUFFIXES or is_dicom(path):
                yield path


def _from_list(path: Path) -> Iterator[Item]:
    """Every row of a list; files are relative to the list's folder, as they are in data sets."""
    rows = _rows(path)
    lacking = [name for name in BOX if rows and name not in rows[0]]
    if len(lacking) in (1, 2):  # a column named left alone may mean a side of the body
        raise ProtoPFaithError(
            f"The list {path} has no column {' and no column '.join(map(repr, lacking))}, and a box has "
            f"{', '.join(BOX)}; add what is missing."
        )
    for row in rows:
        column = next(name for name in FILES if name in row)
        if not isinstance(row[column], str | None):
            raise ProtoPFaithError(
                f"The list {path} has {shown(row[column])} in its column {column}; give the paths of files, "
                "as text."
            )
        file = str(row[column] or "").strip()
        if not Path(file).name:
            raise ProtoPFaithError(f"The list {path} has a row without a file ({shown(file)}); remove it.")
        yield Item(
            Path(file).name,
            str(path.parent / file),
            boxes=_boxes(row, path),
            masks=_masks(row, path),
            mask_names=_mask_names(row),
            missing=_missing(Path(file), path),
        )


def _missing(file: Path, path: Path) -> str:
    """What to say where a file is not there, without folders of this machine."""
    if file.is_absolute():
        return (
            f"There is no image {named(file.name)} where the list {named(path.name)} says; correct the list."
        )
    return (
        f"There is no image {named(file)} in the folder of the list {named(path.name)}, from where its paths "
        "count; correct the list."
    )


def _rows(path: Path) -> list[dict[str, object]]:
    """The rows of a list, by the headings of their columns in lower case."""
    if path.suffix.lower() != ".parquet":
        return _csv_rows(path)
    parquet = pyarrow_module("parquet")
    try:
        if not is_file(path):
            raise FileNotFoundError("there is no such file")
        names = [name for name in parquet.read_schema(path).names if name.strip().lower() in READ]
        _check_header([name.strip().lower() for name in parquet.read_schema(path).names], path)
        return _in_lower_case(parquet.read_table(path, columns=names).to_pylist())
    except ProtoPFaithError:
        raise
    except Exception as error:  # whatever a damaged file leads to
        raise ProtoPFaithError(
            f"The list {path} is no readable Parquet file ({reason(error)}); write it anew, or give "
            "a CSV file."
        ) from error


def _csv_rows(path: Path) -> list[dict[str, object]]:
    cells = list(read_cells(path, "a CSV file with a column of files").values())
    header = [heading.lower() for heading in cells[0]] if cells else []
    _check_header(header, path)
    long = next((row for row in cells[1:] if any(row[len(header) :])), None)
    if long is not None:
        raise ProtoPFaithError(
            f"The list {path} has more cells than headings in a row ({shown(','.join(long))}); put names "
            "with commas between quotation marks."
        )
    places = {name: header.index(name) for name in READ if name in header}
    return [
        {name: row[place] if place < len(row) else None for name, place in places.items()}
        for row in cells[1:]
    ]


def _check_header(header: Sequence[str], path: Path) -> None:
    """Raises if no column has files, or two that are read have the same name, whatever its case."""
    if header and not any(name in header for name in FILES):
        raise ProtoPFaithError(
            f"The list {path} has no column named {', '.join(FILES)}, but {shown(', '.join(header[:5]))}; "
            "name the column of files so, in the first line."
        )
    twice = [name for name in READ if header.count(name) > 1]
    if twice:
        raise ProtoPFaithError(f"The list {path} has two columns named {twice[0]}; keep one of them.")


def _in_lower_case(rows: Iterable[dict[str, Any]]) -> list[dict[str, object]]:
    return [{name.strip().lower(): value for name, value in row.items()} for row in rows]


def _boxes(row: dict[str, object], path: Path) -> tuple[Box, ...]:
    given = ["" if _is_empty(row.get(name)) else str(row[name]).strip() for name in BOX]
    if not all(given):
        if any(given) and all(name in row for name in BOX):
            raise ProtoPFaithError(
                f"The list {path} has a box of which a side is missing ({', '.join(given)}); give "
                f"{', '.join(BOX)}, or none of them."
            )
        return ()
    try:
        numbers = [float(value) for value in given]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)) or "_" in "".join(given):  # Python takes 1_0 for 10
        raise ProtoPFaithError(
            f"The list {path} has a box that is no number ({', '.join(given)}); correct it."
        )
    left, top, right, bottom = numbers
    if not (left < right and top < bottom):
        raise ProtoPFaithError(
            f"The list {path} has a box from {left:g}, {top:g} to {right:g}, {bottom:g}, which is empty; "
            "give left, top, right and bottom in pixels."
        )
    return ((left, top, right, bottom),)


def _masks(row: dict[str, object], path: Path) -> tuple[str, ...]:
    """Relative to the list's folder, as files are; whether it can be read is said in the row of its image."""
    mask = row.get(MASK)
    return () if _is_empty(mask) else (str(path.parent / str(mask).strip()),)


def _mask_names(row: dict[str, object]) -> tuple[str, ...]:
    """The same, as the list has it; of an absolute path its last part."""
    if _is_empty(row.get(MASK)):
        return ()
    name = Path(str(row[MASK]).strip())
    return (named(name.name if name.is_absolute() else name),)


def _is_empty(cell: object) -> bool:
    """Whether nothing is said: no text, or a number that pandas writes where there is none."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or not str(cell).strip()


def _from_tar(path: Path) -> Iterator[Item]:
    """Members that are named like images, and those of any other name that begin like one."""
    try:
        with tarfile.open(path, "r:") as archive, path.open("rb") as content:
            for member in archive:
                name = Path(member.name).name
                suffix = Path(name).suffix.lower()
                if name[:1] == "." or member.isdir():
                    continue
                if not member.isreg() or member.issparse() or member.size > MOST_MEMBER:
                    if suffix in SUFFIXES | {".dcm"}:
                        say_once(
                            f"{named(path)} has images that are links, devices or too large, such as "
                            f"{named(name)}; they are left out."
                        )
                    continue
                content.seek(member.offset_data)
                if suffix in SUFFIXES | {".dcm"} or looks_like_image(content.read(min(member.size, 132))):
                    yield Item(_inside(member.name), str(path), member.offset_data, member.size)
    except (tarfile.TarError, OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            raise ProtoPFaithError(f"{named(path)} cannot be read ({reason(error)}); check it.") from error
        raise ProtoPFaithError(f"{path} is no readable tar, or is cut; give another copy.") from error


def _told_apart(members: Iterable[Item]) -> Iterator[Item]:
    """Members of a tar, which may hold several files of one name, each under a name of its own."""
    taken = set()
    for item in members:
        name, first = item.name, Path(item.name)
        for number in count(2):
            if name not in taken:
                break
            name = str(first.with_name(f"{first.stem} ({number}){first.suffix}"))
        taken.add(name)
        yield replace(item, name=name)


def _inside(name: str) -> str:
    """The name of a member, without what leads out of the tar: it is only ever a name."""
    return "/".join(part for part in name.split("/") if part not in ("", ".", "..")) or "image"
