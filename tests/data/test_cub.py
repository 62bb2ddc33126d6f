"""CUB-200-2011 in its official layout, small."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from protopfaith.data import ImageData, load_data, prepare
from protopfaith.errors import ProtoPFaithError

Save = Callable[..., Path]
CLASSES = ("001.Black_footed_Albatross", "002.Laysan_Albatross", "003.Sooty_Albatross")


@pytest.fixture
def root(tmp_path: Path, save: Save) -> Path:
    """Three classes of 12 images, 40 x 20 pixels; every third image is for the test."""
    root = tmp_path / "CUB_200_2011"
    images, labels, splits, boxes, points = [], [], [], [], []
    for label, name in enumerate(CLASSES, start=1):
        for i in range(12):
            number = len(images) + 1
            save(root / "images" / name / f"Bird_{i:04d}.jpg", number, (40, 20))
            images.append(f"{number} {name}/Bird_{i:04d}.jpg")
            labels.append(f"{number} {label}")
            splits.append(f"{number} {int(i % 3 != 0)}")
            boxes.append(f"{number} 4.0 2.0 20.0 10.0")
            points.append(f"{number} 1 {i + 0.5} 6.0 1")
            points.append(f"{number} 2 0.0 0.0 0")
    for name, lines in {
        "images.txt": images,
        "image_class_labels.txt": labels,
        "train_test_split.txt": splits,
        "bounding_boxes.txt": boxes,
        "classes.txt": [f"{i} {name}" for i, name in enumerate(CLASSES, start=1)],
        "parts/part_locs.txt": points,
        "parts/parts.txt": ["1 beak", "2 left eye"],
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return root


def load(root: Path, **options: object) -> ImageData:
    return load_data("cub", root=root, size=10, **options)  # type: ignore[arg-type]


def test_the_official_test_set_is_held_out(root: Path) -> None:
    data = load(root)
    assert data.classes == ("Black footed Albatross", "Laysan Albatross", "Sooty Albatross")
    assert len(data.test) == 12
    assert all(int(path[-8:-4]) % 3 == 0 for path in data.test.paths)
    assert len(data.train) + len(data.validation) == 24
    assert data.notes == ()


def test_five_stratified_folds_cover_the_training_images_once(root: Path) -> None:
    folds = [load(root, fold=k) for k in range(5)]
    validated = sorted(path for data in folds for path in data.validation.paths)
    everything = load(root, fold="none")
    assert validated == sorted(everything.train.paths)
    assert len(everything.validation) == 0
    for data in folds:
        assert all(1 <= data.validation.labels.tolist().count(label) <= 2 for label in range(3))
    assert folds[0].splits() == load(root).splits()


def test_the_parent_folder_will_do(root: Path) -> None:
    assert load(root.parent).fingerprint == load(root).fingerprint


def test_boxes_and_parts_move_with_the_resize(root: Path) -> None:
    data = load(root)
    index = 3
    number = int(data.train.paths[index][-8:-4])
    assert data.train.box(index) == pytest.approx((1.0, 1.0, 6.0, 6.0))
    assert data.train.points(index) == {"beak": pytest.approx(((number + 0.5) / 4, 3.0))}


def test_a_missing_image_is_named(root: Path) -> None:
    (root / "images" / CLASSES[1] / "Bird_0004.jpg").unlink()
    with pytest.raises(
        ProtoPFaithError, match=r"1 of 36 images that images.txt lists .*Bird_0004.jpg.*CUB_200_2011"
    ):
        load(root)


def test_an_image_without_label_is_said_and_left_out(root: Path, save: Save) -> None:
    save(root / "images" / CLASSES[0] / "extra.jpg", 999)
    data = load(root)
    assert data.notes == (
        f"1 images in images/ have no label and are left out (images/{CLASSES[0]}/extra.jpg).",
    )
    assert sum(map(len, data.sets().values())) == 36


@pytest.mark.parametrize("table", ["image_class_labels.txt", "train_test_split.txt"])
def test_a_cut_off_table_is_noticed(root: Path, table: str) -> None:
    path = root / table
    path.write_text("\n".join(path.read_text().splitlines()[:20]))
    with pytest.raises(ProtoPFaithError, match=rf"{table} speaks of 20 images and images.txt of 36"):
        load(root)


@pytest.mark.parametrize("table", ["bounding_boxes.txt", "parts/part_locs.txt", "images.txt"])
def test_a_table_cut_off_within_a_line(root: Path, table: str) -> None:
    path = root / table
    content = path.read_text().splitlines()
    path.write_text("\n".join([*content[:-1], "36"]))
    with pytest.raises(ProtoPFaithError, match="cut off"):
        load(root)


@pytest.mark.parametrize("box", ["4.0 2.0 -20.0 10.0", "4.0 2.0 20.0 0"])
def test_a_box_without_a_size_is_named(root: Path, box: str) -> None:
    path = root / "bounding_boxes.txt"
    path.write_text(path.read_text().replace("\n7 4.0 2.0 20.0 10.0", f"\n7 {box}"))
    with pytest.raises(ProtoPFaithError, match=r"box of image 7 in .*bounding_boxes\.txt is"):
        load(root)


@pytest.mark.parametrize("name", ["images.txt", "classes.txt", "images"])
def test_what_is_missing_is_named(root: Path, name: str) -> None:
    path = root / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ProtoPFaithError, match=rf"{name}/? missing; unpack CUB_200_2011.tgz"):
        load(root)


def test_the_older_archive_is_recognized(tmp_path: Path, save: Save) -> None:
    save(tmp_path / "old" / "images" / "001.Albatross" / "a.jpg", 0)
    (tmp_path / "old" / "lists").mkdir()
    with pytest.raises(ProtoPFaithError, match="older CUB-200 of 2010"):
        load(tmp_path / "old")


def test_annotation_is_optional_and_that_is_said(root: Path) -> None:
    (root / "bounding_boxes.txt").unlink()
    shutil.rmtree(root / "parts")
    data = load(root)
    assert data.train.box(0) is None
    assert data.train.points(0) == {}
    assert len(data.notes) == 2


def test_a_test_image_is_never_trained_on(root: Path) -> None:
    """A copy of a test picture among the training pictures is left out."""
    shutil.copy(
        root / "images" / CLASSES[0] / "Bird_0000.jpg", root / "images" / CLASSES[0] / "Bird_0001.jpg"
    )
    data = load(root)
    assert sum(map(len, data.sets().values())) == 35
    assert "1 training images are also test images" in data.notes[0]


def test_a_truncated_image_is_named(root: Path) -> None:
    path = root / "images" / CLASSES[2] / "Bird_0005.jpg"
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(ProtoPFaithError, match=r"Bird_0005.jpg cannot be read"):
        prepare("cub", root, 10)
    assert sum(map(len, load(root, skip_unreadable=True).sets().values())) == 35
    report = str(prepare("cub", root, 10, skip_unreadable=True))
    assert "35 images of 3 classes" in report
    assert "1 more are unreadable and skipped" in report
    assert "all readable" not in report


def test_prepare_reports(root: Path) -> None:
    report = str(prepare("cub", root, 10))
    assert "36 images of 3 classes" in report
    assert "all readable" in report
    assert "12 test" in report
