"""Stanford Dogs in its official layout, small: real .mat lists, XML annotation without suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from protopfaith.data import ImageData, load_data
from protopfaith.errors import ProtoPFaithError

Save = Callable[..., Path]
BREEDS = ("n02085620-Chihuahua", "n02085782-Japanese_spaniel")
ANNOTATION = """<annotation><folder>02085620</folder><size><width>50</width><height>30</height></size>
<object><name>dog</name><bndbox><xmin>10</xmin><ymin>6</ymin><xmax>30</xmax><ymax>24</ymax></bndbox></object>
<object><name>dog</name><bndbox><xmin>25</xmin><ymin>3</ymin><xmax>45</xmax><ymax>15</ymax></bndbox></object>
</annotation>"""


def write_list(path: Path, files: list[str]) -> None:
    """A column of cells, as the official lists have."""

    def cells(texts: list[str]) -> np.ndarray:
        column = np.empty((len(texts), 1), object)
        column[:, 0] = texts
        return column

    labels = np.array([[BREEDS.index(file.split("/")[0]) + 1] for file in files], float)
    annotations = [file.removesuffix(".jpg") for file in files]
    savemat(path, {"file_list": cells(files), "annotation_list": cells(annotations), "labels": labels})


@pytest.fixture
def root(tmp_path: Path, save: Save) -> Path:
    root = tmp_path / "dogs"
    lists: dict[str, list[str]] = {"train": [], "test": []}
    for number, breed in enumerate(BREEDS):
        for i in range(14):
            name = f"{breed}/{breed.split('-')[0]}_{i}"
            save(root / "Images" / f"{name}.jpg", 100 * number + i, (50, 30))
            annotation = root / "Annotation" / name
            annotation.parent.mkdir(parents=True, exist_ok=True)
            annotation.write_text(ANNOTATION)
            lists["train" if i < 10 else "test"].append(f"{name}.jpg")
    for split, files in lists.items():
        write_list(root / f"{split}_list.mat", files)
    return root


def load(root: Path, **options: object) -> ImageData:
    return load_data("dogs", root=root, size=(15, 25), **options)  # type: ignore[arg-type]


def test_the_official_lists_decide(root: Path) -> None:
    data = load(root)
    assert data.classes == ("Chihuahua", "Japanese spaniel")
    assert [len(images) for images in data.sets().values()] == [16, 4, 8]
    assert all(int(path.split("_")[-1].removesuffix(".jpg")) >= 10 for path in data.test.paths)
    assert data.notes == ()
    assert all(
        path.startswith(f"Images/{BREEDS[label]}")
        for path, label in zip(data.test.paths, data.test.labels.tolist(), strict=True)
    )


def test_all_boxes_are_kept_at_training_size(root: Path) -> None:
    data = load(root)
    assert data.test.boxes(0).tolist() == [[5, 3, 15, 12], [12.5, 1.5, 22.5, 7.5]]
    assert data.test.box(0) == (5, 1.5, 22.5, 12)


def test_lists_in_a_folder_of_their_own(root: Path) -> None:
    (root / "lists").mkdir()
    for name in ("train_list.mat", "test_list.mat"):
        (root / name).rename(root / "lists" / name)
    assert len(load(root).test) == 8


def test_a_missing_image_is_named(root: Path) -> None:
    next((root / "Images" / BREEDS[0]).iterdir()).unlink()
    with pytest.raises(ProtoPFaithError, match=r"1 of 28 images that train_list.mat and test_list.mat lists"):
        load(root)


def test_an_image_without_label_is_said(root: Path, save: Save) -> None:
    save(root / "Images" / BREEDS[1] / "n02085782_99.jpg", 4242)
    assert "n02085782_99.jpg" in load(root).notes[0]


def test_the_wrong_archive(root: Path, tmp_path: Path) -> None:
    (root / "test_list.mat").unlink()
    with pytest.raises(ProtoPFaithError, match=r"test_list.mat missing; unpack images.tar"):
        load(root)


def test_a_truncated_list(root: Path) -> None:
    path = root / "train_list.mat"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ProtoPFaithError, match=r"train_list.mat cannot be read"):
        load(root)


def test_a_mat_file_of_something_else(root: Path) -> None:
    savemat(root / "train_list.mat", {"train_data": np.zeros((3, 3))})
    with pytest.raises(ProtoPFaithError, match=r"train_list.mat cannot be read"):
        load(root)


def test_broken_annotation_is_named(root: Path) -> None:
    path = root / "Annotation" / BREEDS[0] / "n02085620_3"
    path.write_text(ANNOTATION[:100])
    with pytest.raises(ProtoPFaithError, match=r"n02085620_3 is broken"):
        load(root)


def test_without_annotation(root: Path) -> None:
    import shutil

    shutil.rmtree(root / "Annotation")
    data = load(root)
    assert data.train.box(0) is None
    assert "no boxes" in data.notes[0]
