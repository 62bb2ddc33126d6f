"""Image folders: as people have them, and as they go wrong."""

from __future__ import annotations

import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protopfaith.data import ImageData, load_data
from protopfaith.errors import ProtoPFaithError

Save = Callable[..., Path]


@pytest.fixture
def one_folder(tmp_path: Path, save: Save) -> Path:
    root = tmp_path / "pictures"
    for label, name in enumerate(("cat", "dog", "hen")):
        for i in range(15):
            save(root / name / f"{i}.png", 100 * label + i)
    return root


@pytest.fixture
def split_folders(tmp_path: Path, save: Save) -> Path:
    root = tmp_path / "split"
    for number, (split, count) in enumerate({"train": 6, "val": 2, "test": 3}.items()):
        for label, name in enumerate(("cat", "dog")):
            for i in range(count):
                save(root / split / name / f"{i}.jpg", 1000 * number + 100 * label + i)
    return root


def load(root: Path, **options: object) -> ImageData:
    return load_data("folder", root=root, size=16, **options)  # type: ignore[arg-type]


def test_one_folder_is_split_stratified(one_folder: Path) -> None:
    data = load(one_folder)
    assert data.classes == ("cat", "dog", "hen")
    assert sum(len(images) for images in data.sets().values()) == 45
    assert len(data.validation) in (7, 8)
    assert Counter(data.test.labels.tolist()) == {0: 3, 1: 3, 2: 3}
    assert not set(data.train.paths) & set(data.validation.paths)
    assert data.splits() == load(one_folder).splits()
    assert data.splits() != load(one_folder, seed=1).splits()


def test_given_splits_are_kept(split_folders: Path) -> None:
    data = load(split_folders)
    assert [len(images) for images in data.sets().values()] == [12, 4, 6]
    assert all(path.startswith("val/") for path in data.validation.paths)
    assert len(load(split_folders, fold="none").validation) == 0
    refolded = load(split_folders, fold=1)
    assert len(refolded.train) + len(refolded.validation) == 16
    assert refolded.test.paths == data.test.paths


def test_validation_images_that_are_too_few_are_dealt_anew(tmp_path: Path, save: Save) -> None:
    root = tmp_path / "few"
    for number, (split, count) in enumerate({"train": 41, "val": 2, "test": 3}.items()):
        for label, name in enumerate(("cat", "dog")):
            for i in range(count):
                save(root / split / name / f"{i}.jpg", 1000 * number + 100 * label + i)
    kept, chosen = load(root), load(root, fold="auto")
    assert [len(images) for images in kept.sets().values()] == [82, 4, 6]
    assert chosen.splits() == load(root, fold=0).splits() != kept.splits()
    assert any("has 4 beside 82 training images, too few" in note for note in chosen.notes)
    assert not any("too few" in note for note in kept.notes)


def test_auto_keeps_validation_images_that_are_enough(split_folders: Path, one_folder: Path) -> None:
    for root in (split_folders, one_folder):
        assert load(root, fold="auto").splits() == load(root).splits()


def test_two_folders_of_one_split_are_an_error(split_folders: Path, one_folder: Path, save: Save) -> None:
    save(split_folders / "validation" / "cat" / "0.jpg", 9000)
    with pytest.raises(
        ProtoPFaithError, match=r"two folders of validation images in .*, val/ and validation/"
    ):
        load(split_folders)
    for name in ("val", "valid"):  # without train/ these are classes like any other
        for i in range(5):
            save(one_folder / name / f"{i}.png", 9100 + len(name) * 10 + i)
    assert load(one_folder).classes == ("cat", "dog", "hen", "val", "valid")


@pytest.mark.parametrize("validation", ["val", "validation"])
def test_splits_without_training_images_are_classes_and_said_so(
    validation: str, split_folders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the training images lie in learning/."""
    (split_folders / "train").rename(split_folders / "learning")
    (split_folders / "val").rename(split_folders / validation)
    with caplog.at_level(logging.WARNING, logger="protopfaith"):
        data = load(split_folders)
    assert data.classes == ("learning", "test", validation)
    said = f"There is no train/ with class folders in {split_folders}, so test/ and {validation}/ count as"
    assert [said in record.message for record in caplog.records] == [True]
    assert said in data.notes[0]


def test_splits_are_known_in_any_case_and_spelling(split_folders: Path) -> None:
    """Otherwise the network would learn to tell Training from Testing."""
    expected = load(split_folders)
    (split_folders / "train").rename(split_folders / "Training")
    (split_folders / "test").rename(split_folders / "Testing")
    (split_folders / "val").rename(split_folders / "VALID")
    data = load(split_folders)
    assert data.classes == ("cat", "dog")
    for name, images in data.sets().items():
        assert torch.equal(images.uint8(), expected.sets()[name].uint8())


def test_trains_are_a_class_beside_others(one_folder: Path) -> None:
    (one_folder / "dog").rename(one_folder / "train")
    assert load(one_folder).classes == ("cat", "hen", "train")


def test_pictures_without_classes_are_not_a_class_for_lying_in_train(tmp_path: Path, save: Save) -> None:
    for name in ("train", "test"):
        for i in range(5):
            save(tmp_path / "flat" / name / f"{i}.png", 10 * len(name) + i)
    with pytest.raises(ProtoPFaithError, match="There are no class folders with images"):
        load(tmp_path / "flat")


@pytest.mark.parametrize("counts", [(2, 2), (2, 3, 2, 9), (2, 2, 2, 2, 2, 2, 2)])
@pytest.mark.parametrize("fold", [None, 0, 3])
def test_every_class_is_trained_on_however_few_images_it_has(
    counts: tuple[int, ...], fold: int | None, tmp_path: Path, save: Save
) -> None:
    for label, count in enumerate(counts):
        for i in range(count):
            save(tmp_path / "few" / f"class {label}" / f"{i}.png", 100 * label + i)
    for seed in range(4):
        data = load(tmp_path / "few", fold=fold, seed=seed)
        assert set(data.train.labels.tolist()) == set(range(len(counts)))
        assert sum(len(images) for images in data.sets().values()) == sum(counts)


def test_a_class_of_one_patient_is_trained_on_and_not_parted(one_folder: Path, tmp_path: Path) -> None:
    files = sorted(path.relative_to(one_folder).as_posix() for path in one_folder.rglob("*.png"))
    table = tmp_path / "patients.csv"
    table.write_text("".join(f"{file},{'one' if file.startswith('hen') else file}\n" for file in files))
    for seed in range(6):
        data = load(one_folder, seed=seed, groups=str(table))
        assert Counter(data.train.labels.tolist())[2] == 15


def test_pixels_are_those_of_the_file(one_folder: Path) -> None:
    data = load(one_folder)
    with Image.open(one_folder / data.test.paths[4]) as image:
        expected = np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR))
    pixels, label = data.test[4]
    assert pixels.dtype == torch.uint8
    assert np.array_equal(pixels.permute(1, 2, 0).numpy(), expected)
    assert data.test.paths[4].startswith(data.classes[label])
    assert torch.equal(data.test.uint8()[4], pixels)


def test_the_second_loading_reads_no_image(one_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load(one_folder)
    monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("an image was opened"))
    second = load(one_folder)
    assert isinstance(second.train.pixels, np.memmap)
    assert torch.equal(first.train.uint8(), second.train.uint8())
    assert first.fingerprint == second.fingerprint


def test_a_changed_file_is_noticed(one_folder: Path, save: Save) -> None:
    before = load(one_folder)
    save(one_folder / "cat" / "3.png", 999)
    after = load(one_folder)
    assert before.fingerprint != after.fingerprint


def test_the_fingerprint_does_not_depend_on_the_place(one_folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(one_folder, moved)
    assert load(one_folder).fingerprint == load(moved).fingerprint


def test_copies_of_a_picture_are_never_parted(one_folder: Path) -> None:
    for i in range(10):
        shutil.copy(one_folder / "cat" / "0.png", one_folder / "cat" / f"copy{i}.png")
    copies = {"cat/0.png", *(f"cat/copy{i}.png" for i in range(10))}
    for seed in range(3):
        splits = load(one_folder, seed=seed).splits()
        assert sum(bool(copies & set(paths)) for paths in splits.values()) == 1


def test_an_image_in_two_splits_is_an_error(split_folders: Path) -> None:
    shutil.copy(split_folders / "train/cat/0.jpg", split_folders / "test/cat/9.jpg")
    with pytest.raises(ProtoPFaithError, match=r"two splits: train/cat/0.jpg .* test/cat/9.jpg"):
        load(split_folders)


def test_a_class_that_is_only_in_test(split_folders: Path, save: Save) -> None:
    save(split_folders / "test/hen/0.jpg", 5000)
    with pytest.raises(ProtoPFaithError, match="'hen' is in test but not in training"):
        load(split_folders)


def test_a_class_with_one_image(one_folder: Path, save: Save) -> None:
    save(one_folder / "owl" / "0.png", 5000)
    with pytest.raises(ProtoPFaithError, match="'owl' has only one training image"):
        load(one_folder)


def test_splits_without_any_training_image(split_folders: Path) -> None:
    shutil.rmtree(split_folders / "train")
    (split_folders / "train").mkdir()
    with pytest.raises(ProtoPFaithError, match=r"no training images in .*split; put them into train/"):
        load(split_folders)


def test_an_image_that_was_never_fetched_is_unreadable(one_folder: Path) -> None:
    for name, label in (("gone.png", "dog"), ("away.png", "cat")):
        (one_folder / label / name).symlink_to(f"../../store/{name}")
    with pytest.raises(ProtoPFaithError, match=r"no image at .*away\.png.*1 more"):
        load(one_folder)
    data = load(one_folder, skip_unreadable=True)
    assert set(data.unreadable) == {"cat/away.png", "dog/gone.png"}
    assert sum(len(images) for images in data.sets().values()) == 45
    shutil.copy(one_folder / "dog" / "3.png", one_folder / "store.png")
    fetched = one_folder / "dog" / "gone.png"
    fetched.unlink()
    fetched.symlink_to("../store.png")
    assert "dog/gone.png" not in load(one_folder, skip_unreadable=True).unreadable


@pytest.mark.parametrize("skip", [False, True])
def test_unreadable_images(one_folder: Path, skip: bool, caplog: pytest.LogCaptureFixture) -> None:
    broken = one_folder / "dog" / "7.png"
    broken.write_bytes(broken.read_bytes()[:100])
    if not skip:
        with pytest.raises(ProtoPFaithError, match=r"7.png cannot be read"):
            load(one_folder)
        return
    with caplog.at_level(logging.WARNING, logger="protopfaith"):
        data = load(one_folder, skip_unreadable=True)
    assert "dog/7.png" not in [path for paths in data.splits().values() for path in paths]
    assert sum(len(images) for images in data.sets().values()) == 44
    assert "1 unreadable images are skipped: dog/7.png." in caplog.text


def test_missing_empty_and_wrong_folders(tmp_path: Path, save: Save) -> None:
    with pytest.raises(ProtoPFaithError, match="There is no folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProtoPFaithError, match="is empty"):
        load(tmp_path / "empty")
    save(tmp_path / "flat" / "a.png", 0)
    with pytest.raises(ProtoPFaithError, match="no class folders"):
        load(tmp_path / "flat")
    with pytest.raises(ProtoPFaithError, match="needs the folder"):
        load_data("folder")


def test_a_class_folder_without_images(one_folder: Path) -> None:
    (one_folder / "yak").mkdir()
    with pytest.raises(ProtoPFaithError, match="yak holds no images"):
        load(one_folder)


def test_hidden_files_are_ignored_and_stray_images_said(one_folder: Path, save: Save) -> None:
    (one_folder / "cat" / "._0.png").write_bytes(b"junk of another system")
    save(one_folder / "stray.png", 77)
    data = load(one_folder)
    assert "have no class folder" in data.notes[0]
    assert sum(len(images) for images in data.sets().values()) == 45


def test_one_channel(one_folder: Path) -> None:
    assert load(one_folder, channels=1).train[0][0].shape == (1, 16, 16)


def test_splits_are_written(one_folder: Path, cache: Path) -> None:
    load(one_folder, fold=2)
    (written,) = (cache / "splits").iterdir()
    assert written.name.endswith("seed0-fold2.json")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_cache_that_cannot_be_written(
    one_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    monkeypatch.setenv("PROTOPFAITH_CACHE", str(locked))
    with pytest.raises(ProtoPFaithError, match="Could not write"):
        load(one_folder)


def test_unknown_names_and_options(one_folder: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="did you mean 'folder'"):
        load_data("foldr", root=one_folder)
    with pytest.raises(ProtoPFaithError, match="no option 'chanels'; did you mean 'channels'"):
        load(one_folder, chanels=1)
