"""Plain image folders: one folder per class, already split or not."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from protopfaith.data.disk import Known, load_listing
from protopfaith.data.groups import named_groups, parted, patients, read_groups
from protopfaith.data.imagedata import ImageData
from protopfaith.data.images import no_image
from protopfaith.data.listing import READABLE, Entry, Listing, image_files
from protopfaith.data.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing
from protopfaith.data.registry import DATASETS, Fold, Size, as_size
from protopfaith.data.roots import check_folder
from protopfaith.data.scaling import Scaling
from protopfaith.data.split_names import folders_in, split_folders, split_named
from protopfaith.data.splits import complete_splits, connected
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import existing_folder

ENOUGH = 100
"""Validation images; fewer are too few where they are also less than the share `FEW` of training images."""
FEW = 0.05


@DATASETS.register("folder")
def load_folder(
    *,
    root: Path | None,
    size: Size,
    seed: int,
    fold: Fold = "auto",
    skip_unreadable: bool,
    channels: int = 3,
    bits: int | str | None = None,
    window: Sequence[float] | None = None,
    groups: str | None = None,
) -> ImageData:
    """Your own images: train/<class>/*.jpg with validation/ and test/, or <class>/*.jpg, split for you.

    The fold `auto` keeps a validation set that is there unless it is too small to choose a network by.
    `groups` is a CSV file of image and group, or `names`: what file names such as patient12_3.png say; by
    default, and with `none`, DICOM headers alone say which images belong together.
    """
    scaling = Scaling(bits, None if window is None else (window[0], window[1]))
    listing = list_folder(existing_folder(root, "folder"))
    belongs, named = _groups(listing, groups)
    fold, chosen = _large_enough(listing, fold)
    split_given = [belongs.get(entry.path, entry.path) for entry in listing.entries if entry.split]
    notes = parted(split_given, [entry.split or "" for entry in listing.entries if entry.split])
    entries = tuple(replace(entry, group=belongs.get(entry.path, "")) for entry in listing.entries)
    notes = [*listing.notes, *named, *chosen, *notes]
    return load_listing(
        replace(
            listing, name=f"folder{scaling.name}", entries=entries, read=scaling.read, notes=tuple(notes)
        ),
        lambda known: split_folder(known, fold, seed, belongs),
        replace(
            default_preprocessing(as_size(size, 224), channels), bits=scaling.bits, window=scaling.window
        ),
        skip_unreadable=skip_unreadable,
        split_name=f"seed{seed}-fold{fold}",
    )


def _groups(listing: Listing, groups: str | None) -> tuple[dict[str, str], list[str]]:
    """The group of each image that has one, and sentences about it."""
    if groups not in (None, "none", "names"):
        return read_groups(groups, listing)
    belongs, notes = patients(listing)
    if groups == "names" and not belongs:
        belongs, named = named_groups(listing)
        return belongs, [*notes, *named]
    return belongs, notes


def _large_enough(listing: Listing, fold: Fold) -> tuple[Fold, list[str]]:
    """What the fold `auto` means, and a sentence where that is not the given validation set."""
    if fold != "auto":
        return fold, []
    splits = Counter(entry.split for entry in listing.entries)
    given, trained = splits["validation"], splits["train"]
    if not 0 < given < min(ENOUGH, FEW * trained):
        return None, []
    return 0, [
        f"The folder of validation images has {given} beside {trained:,} training images, too few to choose "
        "a network by: one in five of both together validates instead; data.fold=null keeps yours."
    ]


def list_folder(root: Path, name: str = "folder") -> Listing:
    """All images by class; the split is set where the folders say it."""
    check_folder(root)
    folders = split_folders(root)
    notes = [
        f"The images directly in {place} have no class folder and are left out."
        for place in (folders.values() or [root])
        if any(path.parent == place for path in image_files(place, READABLE))
    ]
    if folders:
        entries = [entry for split, folder in folders.items() for entry in _entries(root, folder, split)]
    else:
        entries = _entries(root, root, None)
        notes += _about_split_names(root)
    _check_counts(root, entries)
    return Listing(
        name, root, tuple(entries), tuple(sorted({entry.label for entry in entries})), tuple(notes)
    )


def split_folder(
    known: Sequence[Known], fold: Fold, seed: int, belongs: Mapping[str, str] | None = None
) -> list[str]:
    """Keeps the splits that are there. Without a test set one image in five is held out, stratified by class;
    without a validation set it is a fold of the rest. Copies of one picture are never parted, and neither are
    images of one group, as `belongs` has it by path. Every class keeps training images."""
    paths = [item.entry.path for item in known]
    labels = [item.entry.label for item in known]
    own = belongs or {}
    groups = connected([item.sha256 for item in known], [own.get(path, f"{path} alone") for path in paths])
    given, shown = [item.entry.split for item in known], [(label,) for label in labels]
    return complete_splits(given, paths, labels, groups, shown, fold=fold, seed=seed)


def default_preprocessing(size: tuple[int, int], channels: int) -> Preprocessing:
    """ImageNet's statistics for color, 0..1 for one channel."""
    return (
        Preprocessing(size, 3, IMAGENET_MEAN, IMAGENET_STD)
        if channels == 3
        else Preprocessing(size, channels, (0.0,), (1.0,))
    )


def _about_split_names(root: Path) -> list[str]:
    """Folders that are named like splits, but are classes; that may not be what was meant."""
    names = [f"{path.name}/" for path in folders_in(root) if split_named(path.name)]
    if not names:
        return []
    return [
        f"There is no train/ with class folders in {root}, so {' and '.join(names)} count as classes like "
        "any other; if they hold splits, put the training images in train/<class>/."
    ]


def _entries(root: Path, folder: Path, split: str | None) -> list[Entry]:
    entries = []
    for class_folder in folders_in(folder):
        images = image_files(class_folder, READABLE)
        if not images:
            if not os.access(class_folder, os.R_OK | os.X_OK):
                raise no_image(class_folder)
            raise ProtoPFaithError(f"The class folder {class_folder} holds no images; fill it or remove it.")
        entries += [Entry(path.relative_to(root).as_posix(), class_folder.name, split) for path in images]
    return entries


def _check_counts(root: Path, entries: Sequence[Entry]) -> None:
    trained = Counter(entry.label for entry in entries if entry.split in (None, "train"))
    if not trained:
        raise ProtoPFaithError(
            f"There are no training images in {root}; put them into train/<class>/, a folder for each class."
        )
    if len(trained) < 2:
        raise ProtoPFaithError(
            f"There is only one class ({next(iter(trained))!r}) in {root}; training needs two."
        )
    for label, count in sorted(trained.items()):
        if count == 1:
            raise ProtoPFaithError(
                f"The class {label!r} has only one training image; add some or remove the class."
            )
