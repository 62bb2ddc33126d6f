"""Whether a folder holds the data set that it is said to hold, by the names in it alone, without torch."""

from __future__ import annotations

from pathlib import Path

from protopfaith.data.listing import READABLE, image_files
from protopfaith.data.split_names import folders_in, holds_splits, split_folders, split_named
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import refuse_run

CUB = "CUB_200_2011.tgz from the CUB-200-2011 page of Caltech's data site, data.caltech.edu"
CUB_TABLES = ("images.txt", "classes.txt", "image_class_labels.txt", "train_test_split.txt")
DOGS = "images.tar, annotation.tar and lists.tar from the Stanford Dogs page of vision.stanford.edu"
DOGS_LISTS = {"train": "train_list.mat", "test": "test_list.mat"}
RSNA = "rsna-pneumonia-detection-challenge.zip from the Kaggle competition RSNA Pneumonia Detection Challenge"
RSNA_OFFICIAL = ("stage_2_train_images", "stage_2_train_labels.csv", "stage_2_detailed_class_info.csv")


def find_cub(root: Path) -> Path:
    """The folder of the official tables: `root`, or CUB_200_2011 in it."""
    if not (root / "images.txt").is_file() and (root / "CUB_200_2011").is_dir():
        root = root / "CUB_200_2011"
    missing = [name for name in CUB_TABLES if not (root / name).is_file()]
    if not (root / "images").is_dir():
        missing.append("images/")
    if missing:
        older = " (this looks like the older CUB-200 of 2010)" if (root / "lists").is_dir() else ""
        raise ProtoPFaithError(
            f"{root} is not CUB-200-2011{older}: {', '.join(missing)} missing; unpack {CUB} and give "
            "the folder CUB_200_2011."
        )
    return root


def find_dogs(root: Path) -> Path:
    """The folder of the official lists: `root`, or lists in it."""
    lists = root / "lists" if (root / "lists").is_dir() else root
    missing = [name for name in DOGS_LISTS.values() if not (lists / name).is_file()]
    missing += [] if (root / "Images").is_dir() else ["Images/"]
    if missing:
        raise ProtoPFaithError(
            f"{root} is not Stanford Dogs: {', '.join(missing)} missing; unpack {DOGS} there."
        )
    return lists


def check_rsna(root: Path) -> None:
    """Raises if there is neither what the official archive holds nor pictures."""
    if any((root / name).exists() for name in (*RSNA_OFFICIAL, "labels.csv")) or image_files(root):
        return
    images, boxes, details = RSNA_OFFICIAL
    raise ProtoPFaithError(
        f"{root} is not RSNA: expected {images}/ with {boxes} and {details}, or labels.csv and pictures, "
        f"or the folders normal/ and lung_opacity/; unpack {RSNA} there."
    )


def check_folder(root: Path) -> None:
    """Raises if no folder could be a class."""
    refuse_run(root)
    if not any(folders_in(place) for place in (split_folders(root).values() or [root])):
        raise ProtoPFaithError(
            f"There are no class folders with images in {root}; expected <class>/*.jpg or "
            "train/<class>/*.jpg."
        )


def external_folders(root: Path) -> list[Path]:
    """The class folders of images from elsewhere; those in train/, validation/ and test/ are taken together.
    Raises if they hold no images."""
    refuse_run(root)
    folders = folders_in(root)
    splits = [path for path in folders if split_named(path.name)]
    if holds_splits(folders) or splits == folders:
        folders = [inside for path in splits for inside in folders_in(path)]
    if not any(image_files(folder, READABLE) for folder in folders):
        raise ProtoPFaithError(
            f"There are no class folders with images in {root}; expected <class>/*.jpg, or give a CSV file."
        )
    return folders


CHECKS = {"cub": find_cub, "dogs": find_dogs, "folder": check_folder, "rsna": check_rsna}
"""Of data sets by name: raises if a folder does not look like them."""
