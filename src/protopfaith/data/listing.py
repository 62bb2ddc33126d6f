"""What lies on disk: which files belong to a data set and what is known of each, before any is decoded."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Literal

from PIL import Image

from protopfaith.annotations import check_fields
from protopfaith.arguments import named, shown, some_of
from protopfaith.data.images import SUFFIXES, no_image, read_image
from protopfaith.data.split_names import split_named
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, is_folder, is_run, leads_nowhere, reason, refuse_run

Box = tuple[float, float, float, float]
Outcome = Literal["one", "several"]
"""What an image shows: one class of many, or several findings, each of which may be there or not."""
READABLE = SUFFIXES | {".dcm"}
CASE = "explanation.json"
"""What a folder of results holds, whose figures are no images to explain."""


@dataclass(frozen=True)
class Entry:
    """One image file, as a list of a data set describes it.

    Args:
        path: relative to the root, with forward slashes
        label: its class; empty where it has `findings`
        split: the official one (train, validation or test, in any case, or val and the like), if there is any
        boxes: around the object, in pixels of the file: left, top, right, bottom
        points: where parts are, (x, y) in pixels of the file
        group: images of one group belong together, as those of one patient
        about: what else is known, such as sex and age
        findings: one number for each finding: 1 there, 0 not there, -1 not known

    >>> Entry("cats/7.png", "cat", split="test").label
    'cat'
    """

    path: str
    label: str
    split: str | None = None
    boxes: tuple[Box, ...] = ()
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    group: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.split:
            object.__setattr__(self, "split", _split_of(self.split, self.path))


def _split_of(name: str, path: str) -> str:
    found = split_named(name)
    if found is None:
        raise ProtoPFaithError(
            f"{named(path)} is in the split {shown(name)}, which is none of train, validation and test; name "
            "it so, or leave it out."
        )
    return found


@dataclass(frozen=True, repr=False)
class Listing:
    """The files of a data set, before any is decoded.

    Args:
        name: of the data set
        root: the folder that paths are relative to
        entries: its files
        classes: names, in the order of the network's outputs
        notes: sentences about what was found or decided, for people
        read: opens one file
        official: whether others made it: contradictions in it are told, not refused
        outcome: "one" class per image, or "several" findings

    >>> listing = Listing("pets", Path("pets"), (Entry("cats/7.png", "cat"),), ("cat", "dog"))
    >>> listing
    Listing('pets', 1 file, 2 classes)
    """

    name: str
    root: Path
    entries: tuple[Entry, ...]
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    read: Callable[[Path], Image.Image] = read_image
    official: bool = False
    outcome: Outcome = "one"

    def __post_init__(self) -> None:
        check_fields(self)
        known = set(self.classes)
        strange = next((one for one in self.entries if one.label and one.label not in known), None)
        if strange is not None:
            raise ProtoPFaithError(
                f"{named(strange.path)} is of the class {shown(strange.label)}, which is not among the "
                f"classes of the listing ({some_of(self.classes)}); add it there."
            )

    def __repr__(self) -> str:
        files = "1 file" if len(self.entries) == 1 else f"{len(self.entries):,} files"
        return f"Listing({self.name!r}, {files}, {len(self.classes)} classes)"

    def stamp(self) -> str:
        """Changes when a file is added, removed or written to; cheap, since no file is opened."""
        digest = hashlib.sha256(f"{self.root.resolve()}\n".encode("utf-8", "surrogateescape"))
        for entry in self.entries:
            try:
                status = (self.root / entry.path).stat()
            except OSError as error:
                if leads_nowhere(self.root / entry.path):  # told, or skipped, where it is decoded
                    digest.update(f"{entry.path}\0nothing\n".encode("utf-8", "surrogateescape"))
                    continue
                raise ProtoPFaithError(
                    f"The image {self.root / entry.path} cannot be read ({reason(error)}); restore it."
                ) from error
            # Not the time of writing alone: a copy in its place may be as large, and keep its time.
            known = f"{status.st_size}\0{status.st_mtime_ns}\0{status.st_ctime_ns}"
            digest.update(f"{entry.path}\0{known}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


def image_files(folder: Path, suffixes: Iterable[str] = SUFFIXES) -> list[Path]:
    """All image files below `folder`, sorted; hidden files are not looked at. Links to nothing are among
    them: images that were never fetched are told as unreadable, not left out."""
    wanted = frozenset(suffixes)
    found = (
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in wanted and (is_file(path) or leads_nowhere(path))
    )
    return sorted(
        (path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)),
        key=lambda path: path.as_posix(),
    )


def expand_folders(paths: Iterable[Path]) -> list[Path]:
    """Files stay; a folder becomes the image files in it, DICOM files among them. One without any stays where
    there are others, to be told when it is its turn, and is an error where nothing else is given."""
    paths = list(paths)
    found = [file for path in paths for file in (_images_in(path) if is_folder(path) else [path])]
    if found and all(map(is_folder, found)):
        raise no_image(found[0])
    return found


def _images_in(folder: Path) -> list[Path]:
    """Those in a folder, without our own results; itself where there are none."""
    refuse_run(folder)
    everything = image_files(folder, READABLE)
    parents = {parent for path in everything for parent in path.parents}
    ours = {one for one in parents if is_file(one / CASE) or (folder in one.parents and is_run(one))}
    found = [path for path in everything if not ours.intersection(path.parents)]
    return found or [folder]


def check_inside(path: str, listed_in: str) -> None:
    """A table may only speak of files below the folder that it lies in."""
    parts = PurePosixPath(path)
    if not path.strip() or parts.is_absolute() or ".." in parts.parts or PureWindowsPath(path).drive:
        raise ProtoPFaithError(
            f"{listed_in} names the file {path[:200]!r}, which does not lie below its folder; correct it."
        )


def listed_name(cell: str, listed_in: str, root: Path | None = None) -> str:
    """How a table's cell names a file below its folder, one way for each file: the same label twice, or two
    labels, would else pass by another spelling. An absolute path is one below `root`, if it lies there.

    >>> listed_name("birds\\\\./7.png", "table.csv")
    'birds/7.png'
    """
    path = cell.replace("\\", "/") if root is None else _below(cell, root)
    check_inside(path, listed_in)
    return PurePosixPath(path).as_posix()


def _below(cell: str, root: Path) -> str:
    """The same path, counted from the root where it is an absolute one below it, by either of its names."""
    for folder in dict.fromkeys((root.absolute(), root.resolve())):
        with suppress(ValueError):
            below = Path(cell).relative_to(folder)
            return below.as_posix() if below.parts else cell
    return cell.replace("\\", "/")


def check_once(names: Iterable[str], listed_in: str) -> None:
    """A table may speak of every file once."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ProtoPFaithError(f"{listed_in} lists {some_of(twice)} more than once; keep one line of each.")


def check_all_there(root: Path, paths: Sequence[str], listed_in: str, where: str) -> None:
    """Every listed image must be a file; names the first ones that are not."""
    for path in paths:
        check_inside(path, listed_in)
    missing = [path for path in paths if not is_file(root / path)]
    if missing:
        raise ProtoPFaithError(
            f"{len(missing)} of {len(paths)} images that {listed_in} lists are not in {root} "
            f"({some_of(missing)}); unpack the archive again ({where})."
        )


def unlisted_note(
    root: Path, folder: Path, paths: Iterable[str], suffixes: Iterable[str] = SUFFIXES
) -> list[str]:
    """A sentence about images that are there but have no label, if there are any; they are left out."""
    listed = set(paths)
    found = (path.relative_to(root).as_posix() for path in image_files(folder, suffixes))
    extra = [path for path in found if path not in listed]
    if not extra:
        return []
    return [f"{len(extra)} images in {folder.name}/ have no label and are left out ({some_of(extra)})."]
