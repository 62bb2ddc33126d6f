"""Stanford Dogs as its three official archives unpack: images, annotation and lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

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
from protopfaith.data.roots import DOGS as WHERE
from protopfaith.data.roots import DOGS_LISTS, find_dogs
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import existing_folder, is_file

LARGEST_ANNOTATION = 1_000_000  # bytes; the official ones have a thousand


@DATASETS.register("dogs")
def load_dogs(*, root: Path | None, size: Size, seed: int, fold: Fold, skip_unreadable: bool) -> ImageData:
    """Stanford Dogs: 120 breeds, official test set, five folds for validation, boxes."""
    return load_listing(
        list_dogs(existing_folder(root, "dogs")),
        lambda known: official_split(known, fold, seed),
        Preprocessing(as_size(size, 224)),
        skip_unreadable=skip_unreadable,
        split_name=f"seed{seed}-fold{fold}",
    )


def list_dogs(root: Path) -> Listing:
    """Reads the official lists; `root` holds Images/, Annotation/ and the lists (there or in lists/)."""
    lists = find_dogs(root)
    listed = {split: _file_list(lists / name) for split, name in DOGS_LISTS.items()}
    paths = [f"Images/{path}" for files in listed.values() for path in files]
    check_once(paths, "train_list.mat and test_list.mat")
    check_all_there(root, paths, "train_list.mat and test_list.mat", WHERE)
    notes = unlisted_note(root, root / "Images", paths)
    if not (root / "Annotation").is_dir():
        notes.append("Annotation/ is missing: the images have no boxes.")
    entries = [
        Entry(f"Images/{path}", _breed(path), split, _boxes(root / "Annotation", path))
        for split, files in listed.items()
        for path in files
    ]
    folders = sorted({path.partition("/")[0] for files in listed.values() for path in files})
    return Listing(
        "dogs",
        root,
        tuple(entries),
        tuple(_breed(f"{name}/") for name in folders),
        tuple(notes),
        official=True,
    )


def _file_list(path: Path) -> list[str]:
    """`file_list` is a column of cells that hold one string each."""
    from scipy.io import loadmat

    try:
        cells: Any = loadmat(path)["file_list"]
    # A cut-off .mat file raises anything from zlib.error to TypeError, depending on where it ends.
    except Exception as error:
        raise ProtoPFaithError(
            f"{path} cannot be read as a Stanford Dogs list ({type(error).__name__}); unpack {WHERE} again."
        ) from error
    try:
        return [str(np.asarray(cell).item()) for cell in cells.ravel()]
    except (AttributeError, ValueError) as error:
        raise ProtoPFaithError(
            f"{path} holds no list of files, which Stanford Dogs has there; unpack {WHERE} again."
        ) from error


def _breed(path: str) -> str:
    """`n02085620-Chihuahua/...` is `Chihuahua`."""
    return path.partition("/")[0].partition("-")[2].replace("_", " ")


def _boxes(folder: Path, path: str) -> tuple[Box, ...]:
    """The annotation is XML in a file named like the image, without suffix."""
    file = folder / Path(path).with_suffix("")
    if not is_file(file) or file.stat().st_size > LARGEST_ANNOTATION:
        return ()
    try:
        found = ElementTree.parse(file).getroot().iter("bndbox")
        return tuple(_box(element) for element in found)
    except (ElementTree.ParseError, TypeError, ValueError) as error:
        raise ProtoPFaithError(f"The annotation {file} is broken ({error}); unpack {WHERE} again.") from error


def _box(element: ElementTree.Element) -> Box:
    left, top, right, bottom = (
        float(element.findtext(key) or "") for key in ("xmin", "ymin", "xmax", "ymax")
    )
    return left, top, right, bottom
