"""Folders that are splits, and folders of pictures of trains."""

from __future__ import annotations

from pathlib import Path

import pytest

from protopfaith.data.split_names import SPLITS, folders_in, split_folders, split_named
from protopfaith.errors import ProtoPFaithError


def made(root: Path, *folders: str) -> Path:
    for folder in folders:
        (root / folder).mkdir(parents=True)
    return root


@pytest.mark.parametrize("word", SPLITS)
def test_words_mean_their_split_in_any_case(word: str) -> None:
    assert split_named(word) == split_named(word.upper()) == split_named(word.title()) == SPLITS[word]
    assert split_named(f"{word}s") is None


def test_splits_are_found_beside_other_folders(tmp_path: Path) -> None:
    root = made(tmp_path, "Training/cat", "val/cat", "notes", ".cache")
    (root / "test").write_text("no folder")
    assert split_folders(root) == {"train": root / "Training", "validation": root / "val"}
    assert folders_in(root) == [root / "Training", root / "notes", root / "val"]


def test_what_a_mac_s_archives_hold_is_no_class(tmp_path: Path) -> None:
    for name in ("cat", "dog", "__MACOSX", ".git"):
        (tmp_path / name).mkdir()
    assert [path.name for path in folders_in(tmp_path)] == ["cat", "dog"]


def test_without_training_images_there_are_no_splits(tmp_path: Path) -> None:
    assert split_folders(made(tmp_path, "test/cat", "validation/cat")) == {}


def test_pictures_of_trains_are_a_class(tmp_path: Path) -> None:
    assert split_folders(made(tmp_path / "classes", "train", "plane")) == {}
    root = made(tmp_path / "splits", "train", "test")  # without classes, but names of splits alone
    assert split_folders(root) == {"train": root / "train", "test": root / "test"}


def test_one_split_in_two_folders_is_one_sentence(tmp_path: Path) -> None:
    root = made(tmp_path, "train/cat", "val/cat", "Validation/cat")
    with pytest.raises(ProtoPFaithError, match="two folders of validation images"):
        split_folders(root)
