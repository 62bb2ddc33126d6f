"""Folders that are not the data set they are said to be."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from protopfaith.data import DATASETS
from protopfaith.data.roots import CHECKS, CUB_TABLES, external_folders, find_cub, find_dogs
from protopfaith.errors import ProtoPFaithError


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path)


@pytest.mark.parametrize("name", CHECKS)
def test_another_folder_is_told_in_the_words_of_the_loader(name: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no images")
    with pytest.raises(ProtoPFaithError) as early:
        CHECKS[name](tmp_path)
    with pytest.raises(ProtoPFaithError) as late:
        DATASETS[name](root=tmp_path, size=None, seed=0, fold=None, skip_unreadable=False)
    assert str(early.value) == str(late.value)


def test_the_folder_around_the_official_one_will_do(tmp_path: Path) -> None:
    inside = tmp_path / "CUB_200_2011"
    (inside / "images").mkdir(parents=True)
    for name in CUB_TABLES:
        (inside / name).touch()
    assert find_cub(tmp_path) == find_cub(inside) == inside
    (inside / "classes.txt").unlink()
    with pytest.raises(ProtoPFaithError, match=r"is not CUB-200-2011: classes\.txt missing"):
        find_cub(tmp_path)


def test_lists_of_dogs_may_lie_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "Images").mkdir()
    (tmp_path / "lists").mkdir()
    for name in ("train_list.mat", "test_list.mat"):
        (tmp_path / "lists" / name).touch()
    assert find_dogs(tmp_path) == tmp_path / "lists"


def test_classes_of_images_from_elsewhere(tmp_path: Path) -> None:
    picture(tmp_path / "train" / "cat" / "1.png")
    picture(tmp_path / "test" / "dog" / "1.png")
    assert [folder.name for folder in external_folders(tmp_path)] == ["dog", "cat"]
    with pytest.raises(ProtoPFaithError, match="no class folders with images"):
        external_folders(tmp_path / "train" / "cat")
