"""Names that people give to splits: train, training, val, validation, test, ..."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protopfaith.errors import ProtoPFaithError

SPLITS = {"train": "train", "training": "train", "validation": "validation", "valid": "validation",
          "val": "validation", "test": "test", "testing": "test"}  # fmt: skip


def split_named(name: str) -> str | None:
    """The split that a name means, in any case; None for any other name.

    >>> split_named("Training"), split_named("val"), split_named("cat")
    ('train', 'validation', None)
    """
    return SPLITS.get(name.lower())


def folders_in(root: Path) -> list[Path]:
    """The folders directly in a folder, sorted; hidden ones, and what a Mac's archives hold beside their
    files, are not looked at."""
    return sorted(
        path for path in root.iterdir() if path.is_dir() and not path.name.startswith((".", "__MACOSX"))
    )


def split_folders(root: Path) -> dict[str, Path]:
    """The folder of each split that is there; none counts unless there are training images."""
    folders = folders_in(root)
    found: dict[str, Path] = {}
    for path in folders if holds_splits(folders) else ():
        split = split_named(path.name)
        if split in found:
            raise ProtoPFaithError(
                f"There are two folders of {split} images in {root}, {found[split].name}/ and {path.name}/; "
                "move their images into one."
            )
        if split is not None:
            found[split] = path
    return found


def holds_splits(folders: Sequence[Path]) -> bool:
    """Whether one of the folders holds training images. Pictures of trains are a class instead: they lie in
    train/ without class folders, beside other classes."""
    names_alone = all(split_named(path.name) for path in folders)
    return any(
        split_named(path.name) == "train" and (names_alone or bool(folders_in(path))) for path in folders
    )
