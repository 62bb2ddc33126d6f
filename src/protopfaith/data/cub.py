"""CUB-200-2011 as its official archive unpacks: 200 species of birds, boxes and part locations."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from protopfaith.data.disk import load_listing, official_split
from protopfaith.data.imagedata import ImageData
from protopfaith.data.listing import (
    Box,
    Entry,
    Listing,
    check_all_there,
    check_once,
    unlisted_note,
)
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.registry import DATASETS, Fold, Size, as_size
from protopfaith.data.roots import CUB as WHERE
from protopfaith.data.roots import find_cub
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import existing_folder, read_plain_text


@DATASETS.register("cub")
def load_cub(*, root: Path | None, size: Size, seed: int, fold: Fold, skip_unreadable: bool) -> ImageData:
    """CUB-200-2011: 200 bird species, official test set, five folds for validation, boxes and parts."""
    return load_listing(
        list_cub(existing_folder(root, "cub")),
        lambda known: official_split(known, fold, seed),
        Preprocessing(as_size(size, 224)),
        skip_unreadable=skip_unreadable,
        split_name=f"seed{seed}-fold{fold}",
    )


def list_cub(root: Path) -> Listing:
    """Reads the official tables; `root` is the folder CUB_200_2011 or the one it was unpacked in."""
    root = find_cub(root)
    paths = {image: f"images/{path}" for image, path in _table(root, "images.txt").items()}
    classes = {number: _readable(name) for number, name in _table(root, "classes.txt").items()}
    labels = _table_for(paths, root, "image_class_labels.txt")
    training = _table_for(paths, root, "train_test_split.txt")
    unknown = sorted(set(labels.values()) - set(classes))
    if unknown:
        raise ProtoPFaithError(
            f"image_class_labels.txt uses the class {unknown[0]}, which classes.txt does not list; unpack "
            f"the archive again ({WHERE})."
        )
    wrong = sorted(set(training.values()) - {"0", "1"})
    if wrong:
        raise ProtoPFaithError(
            f"train_test_split.txt has the value {wrong[0][:40]!r}, but 0 is test and 1 is training; unpack "
            f"the archive again ({WHERE})."
        )
    check_once(paths.values(), "images.txt")
    check_once(classes.values(), "classes.txt")
    check_all_there(root, list(paths.values()), "images.txt", WHERE)
    boxes, box_notes = _boxes(root)
    points, point_notes = _points(root)
    entries = [
        Entry(
            path,
            classes[labels[image]],
            "train" if training[image] == "1" else "test",
            boxes.get(image, ()),
            points.get(image, {}),
        )
        for image, path in paths.items()
    ]
    notes = [*unlisted_note(root, root / "images", paths.values()), *box_notes, *point_notes]
    return Listing("cub", root, tuple(entries), tuple(classes.values()), tuple(notes), official=True)


def _table(root: Path, name: str) -> dict[str, str]:
    """The lines "number value" of an official table."""
    table = {}
    for number, line in enumerate(read_plain_text(root / name, WHERE).splitlines(), start=1):
        if not line.strip():
            continue
        key, _, value = line.strip().partition(" ")
        if not value:
            raise ProtoPFaithError(
                f"Line {number} of {root / name} is cut off ({line!r}); unpack {WHERE} again."
            )
        if key in table:
            raise ProtoPFaithError(
                f"Line {number} of {root / name} has the number {key} again; unpack {WHERE} again."
            )
        table[key] = value
    if not table:
        raise ProtoPFaithError(f"{root / name} is empty; unpack {WHERE} again.")
    return table


def _table_for(paths: dict[str, str], root: Path, name: str) -> dict[str, str]:
    table = _table(root, name)
    if table.keys() != paths.keys():
        raise ProtoPFaithError(
            f"{name} speaks of {len(table)} images and images.txt of {len(paths)}, not the same ones; "
            f"unpack {WHERE} again."
        )
    return table


def _readable(name: str) -> str:
    """`001.Black_footed_Albatross` is `Black footed Albatross`."""
    return name.partition(".")[2].replace("_", " ") or name


def _boxes(root: Path) -> tuple[dict[str, tuple[Box, ...]], list[str]]:
    if not (root / "bounding_boxes.txt").is_file():
        return {}, ["bounding_boxes.txt is missing: the images have no boxes."]
    boxes: dict[str, tuple[Box, ...]] = {}
    for image, line in _table(root, "bounding_boxes.txt").items():
        left, top, width, height = _numbers(root / "bounding_boxes.txt", line, 4)
        if not (width > 0 and height > 0):
            raise ProtoPFaithError(
                f"The box of image {image} in {root / 'bounding_boxes.txt'} is {width:g} wide and {height:g} "
                f"high; unpack {WHERE} again."
            )
        boxes[image] = ((left, top, left + width, top + height),)
    return boxes, []


def _points(root: Path) -> tuple[dict[str, dict[str, tuple[float, float]]], list[str]]:
    """The visible parts of each image."""
    if not all((root / "parts" / name).is_file() for name in ("parts.txt", "part_locs.txt")):
        return {}, ["parts/parts.txt or parts/part_locs.txt is missing: the images have no part locations."]
    names = _table(root, "parts/parts.txt")
    points: dict[str, dict[str, tuple[float, float]]] = defaultdict(dict)
    path = root / "parts" / "part_locs.txt"
    for line in read_plain_text(path, WHERE).splitlines():
        image, part, rest = (*line.split(" ", 2), "", "")[:3]
        x, y, visible = _numbers(path, rest, 3)
        if visible:
            points[image][names.get(part, part)] = (x, y)
    return points, []


def _numbers(path: Path, text: str, count: int) -> list[float]:
    try:
        values = [float(value) for value in text.split()]
        if len(values) != count or not all(map(math.isfinite, values)):
            raise ValueError(f"{len(values)} numbers")
    except ValueError as error:
        raise ProtoPFaithError(
            f"A line of {path} is cut off or has no numbers ({text[:80]!r}); unpack {WHERE} again."
        ) from error
    return values
