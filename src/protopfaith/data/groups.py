"""Which images belong together, as those of one patient: they must not be parted by a split."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from protopfaith.arguments import path as as_path
from protopfaith.arguments import shown, some_of
from protopfaith.data.cache import remember_each
from protopfaith.data.images import is_dicom
from protopfaith.data.listing import READABLE, Listing
from protopfaith.data.table import read_cells
from protopfaith.errors import ProtoPFaithError

WORDS = "person|patient|pat|subject|subj|sub|participant|case|child"
NAMED = re.compile(
    rf"({WORDS})[ _-]?(\d+)(?=[ _.-])|(.*\bIM-)(\d+)(?=-\d+)|([a-z]+-)(\d{{4,}})(?=-\d{{3,4}}\.)",
    re.IGNORECASE,
)
"""How file names of medical collections begin: a word and a number, then something else."""
FEWEST_GROUPS = 10


def read_groups(path: Path | str, listing: Listing) -> tuple[dict[str, str], list[str]]:
    """The group of every listed image, from a CSV file, and a sentence about lines that are of no use.

    Args:
        path: two columns, an image (its path below the root, or its file name where that is the only one) and
            its group; a first line of headings is left out.
        listing: the images.
    """
    path = as_path(path, "The groups")
    rows = list(read_cells(path, "a CSV file of images and their groups").values())
    if any(len(row) < 2 for row in rows):
        raise ProtoPFaithError(f"The groups {path} need two columns, an image and its group; add the second.")
    names = Counter(Path(entry.path).name for entry in listing.entries)
    known = {Path(entry.path).name: entry.path for entry in listing.entries}
    known = {name: image for name, image in known.items() if names[name] == 1}
    known |= {entry.path: entry.path for entry in listing.entries}
    found: dict[str, str] = {}
    for name, group, *_ in rows:
        image = known.get(name)
        if image is not None and found.setdefault(image, group) != group:
            raise ProtoPFaithError(
                f"The groups {path} put {shown(name)} into two, {shown(found[image])} and {shown(group)}; "
                "keep one line of it."
            )
    for entry in listing.entries:
        if not found.get(entry.path):
            raise ProtoPFaithError(
                f"The groups {path} do not say which group {entry.path} belongs to; add a line for it."
            )
    return found, _about_others(path, [row[0] for row in rows], known)


def _about_others(path: Path, names: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """A sentence about lines that name none of the images, if there are any; the first may be headings."""
    has_headings = names[0] not in known and Path(names[0]).suffix.lower() not in READABLE
    others = [name for name in names[has_headings:] if name not in known]
    if not others:
        return []
    count = "1 line" if len(others) == 1 else f"{len(others):,} lines"
    some = some_of(map(shown, others))
    return [
        f"{count} of the groups {path} name none of the images, or a name that several have ({some}), and "
        "are left out."
    ]


def named_groups(listing: Listing) -> tuple[dict[str, str], list[str]]:
    """The group of every image whose file name says it, as `patient12_3.png` or `IM-0115-0001.jpeg` do, and
    a sentence about it; none where names do not tell many groups apart.

    Folders may count anew, so the same number in another of the folders train, validation and test is
    another group.

    Args:
        listing: the images.
    """
    found = {}
    for entry in listing.entries:
        match = NAMED.match(Path(entry.path).name)
        if match:
            name = "".join(part for part in match.groups() if part).lower()
            found[entry.path] = f"{entry.split or ''}/{name}"
    sizes = Counter(found.values())
    telling = len(sizes) >= FEWEST_GROUPS and 1 < max(sizes.values()) <= max(len(listing.entries) // 10, 2)
    if not telling:
        return {}, [
            "File names tell no groups, so every image stands alone; where several belong together, as of "
            "one patient, say so with --groups, a CSV file of image and group."
        ]
    example = Path(next(path for path, group in found.items() if sizes[group] > 1)).name
    return found, [
        f"File names such as {example} put {len(found):,} images into {len(sizes):,} groups, and images of "
        "one group stay in one split; --groups takes a CSV file instead, data.groups=none none."
    ]


def patients(listing: Listing) -> tuple[dict[str, str], list[str]]:
    """The patient of every DICOM file whose header names one, and a sentence about headers that cannot be
    read."""
    known, notes = people(listing)
    return {path: person["id"] for path, person in known.items() if person["id"]}, notes


def people(listing: Listing) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Who is on every DICOM file (`id`, `age`, `sex`), and a sentence about headers that cannot be read."""
    files = [entry.path for entry in listing.entries if is_dicom(listing.root / entry.path)]
    if not files:
        return {}, []

    def read(path: str) -> dict[str, Any] | None:
        from protopfaith.data.dicom import patient

        try:
            return patient(listing.root / path)
        except ProtoPFaithError:  # said, or skipped, where its pixels are read
            return None

    known = remember_each(
        "people", listing.stamp(), files, read, valid=_is_person, description="Reading patients"
    )
    unknown = [path for path in files if path not in known]
    if not unknown:
        return known, []
    names = some_of(unknown, 1)
    return known, [
        f"The headers of {len(unknown):,} DICOM files ({names}) cannot be read, so that it is not known whom "
        "they show; a patient of theirs may be in several splits."
    ]


def _is_person(known: Any) -> bool:
    return (
        isinstance(known, dict)
        and known.keys() == {"id", "age", "sex"}
        and isinstance(known["id"], str | None)
        and isinstance(known["age"], int | None)
        and isinstance(known["sex"], str | None)
    )


def parted(groups: Sequence[str], split_of: Sequence[str]) -> list[str]:
    """A sentence about groups that given splits part, if there are any."""
    where: dict[str, set[str]] = {}
    for group, split in zip(groups, split_of, strict=True):
        where.setdefault(group, set()).add(split)
    several = sorted(group for group, splits in where.items() if len(splits - {""}) > 1)
    if not several:
        return []
    return [
        f"Images that belong together ({some_of(several)}) are in "
        "several of the folders train, validation and test; what is measured there may be too good."
    ]
