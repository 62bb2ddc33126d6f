"""Images that belong together stay together."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data import load_data
from protopfaith.data.cache import cache_folder
from protopfaith.data.folder import list_folder
from protopfaith.data.groups import named_groups, parted, patients, read_groups
from protopfaith.errors import ProtoPFaithError
from tests.data.dicom_files import write_dicom


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOPFAITH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def dicoms(tmp_path: Path) -> Path:
    """Two classes of twenty pictures, two of each patient."""
    random = np.random.default_rng(0)
    for label in ("healthy", "ill"):
        for number in range(20):
            values = random.integers(0, 4096, (12, 10), dtype=np.uint16)
            patient = f"{label}-{number // 2}"
            write_dicom(tmp_path / "images" / label / f"{number}.dcm", values, PatientID=patient)
    return tmp_path / "images"


def test_a_folder_of_dicom_files_is_split_by_patient(dicoms: Path) -> None:
    data = load_data("folder", root=dicoms, size=8, channels=1, bits=12)
    names, _ = patients(list_folder(dicoms))
    assert len(names) == 40
    of_split = {split: {names[path] for path in images.paths} for split, images in data.sets().items()}
    assert not of_split["train"] & of_split["test"]
    assert not of_split["train"] & of_split["validation"]
    assert not of_split["validation"] & of_split["test"]
    assert all(len(images) for images in data.sets().values())
    assert data.preprocessing.bits == 12


def test_without_pydicom_nothing_is_remembered(dicoms: Path) -> None:
    with pytest.MonkeyPatch.context() as before:
        before.setitem(sys.modules, "pydicom", None)
        with pytest.raises(ProtoPFaithError, match="pydicom"):
            load_data("folder", root=dicoms, size=8, channels=1)
    data = load_data("folder", root=dicoms, size=8, channels=1)
    assert {record.group for record in data.train.records}.isdisjoint(r.group for r in data.test.records)
    assert all(record.group for images in data.sets().values() for record in images.records)


def test_patients_that_cannot_be_read_are_told(dicoms: Path) -> None:
    load_data("folder", root=dicoms, size=8, channels=1)
    shutil.rmtree(cache_folder() / "people")
    with pytest.MonkeyPatch.context() as without:
        without.setitem(sys.modules, "pydicom", None)
        data = load_data("folder", root=dicoms, size=8, channels=1)
    assert any("headers of 40 DICOM files" in note for note in data.notes)


@pytest.mark.parametrize("kept", ["[]", '{"healthy/0.dcm": {"id": 7}}', '{"healthy/0.dcm": "p"}', "{"])
def test_a_broken_memory_of_patients_is_read_again(dicoms: Path, kept: str) -> None:
    listing = list_folder(dicoms)
    expected = patients(listing)
    (cache_folder() / "people" / f"{listing.stamp()}.json").write_text(kept)
    assert patients(listing) == expected


def test_scaling_decides_what_is_in_the_cache(dicoms: Path) -> None:
    ranges = load_data("folder", root=dicoms, size=8, channels=1)
    bits = load_data("folder", root=dicoms, size=8, channels=1, bits=16)
    assert bits.train.uint8().float().mean() < 0.2 * ranges.train.uint8().float().mean()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for label in ("a", "b"):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(15):
            pixels = random.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / label / f"{label}{number}.png")
    return tmp_path / "images"


def test_a_csv_file_says_what_belongs_together(pictures: Path, tmp_path: Path) -> None:
    lines = [f"{label}{n}.png,patient {label}{n // 3}" for label in "ab" for n in range(15)]
    (tmp_path / "groups.csv").write_text("image,group\n" + "\n".join(lines))
    data = load_data("folder", root=pictures, size=8, groups=str(tmp_path / "groups.csv"))
    groups, notes = read_groups(tmp_path / "groups.csv", list_folder(pictures))
    assert not notes
    where: dict[str, set[str]] = {}
    for split, images in data.sets().items():
        for path in images.paths:
            where.setdefault(groups[path], set()).add(split)
    assert len(where) == 10
    assert all(len(splits) == 1 for splits in where.values())


def test_lines_about_unknown_images_are_told(pictures: Path, tmp_path: Path) -> None:
    lines = [f"{label}{n}.png,{n}" for label in "ab" for n in range(15)]
    (tmp_path / "groups.csv").write_text("\n".join(["old.png,7", *lines, "older.png,8"]))
    groups, notes = read_groups(tmp_path / "groups.csv", list_folder(pictures))
    assert len(groups) == 30
    assert "2 lines of the groups" in notes[0]
    assert "'old.png', 'older.png'" in notes[0]
    data = load_data("folder", root=pictures, size=8, groups=str(tmp_path / "groups.csv"))
    assert any("2 lines of the groups" in note for note in data.notes)


def test_groups_that_do_not_cover_the_images_are_refused(pictures: Path, tmp_path: Path) -> None:
    listing = list_folder(pictures)
    for text, message in (
        ("a0.png,1\n", "do not say which group"),
        ("a0.png\n", "need two columns"),
        ("a0.png,1\na0.png,1\na0.png,2\n", "put 'a0.png' into two, '1' and '2'"),
        ("a0.png,1\na/a0.png,2\n", "put 'a/a0.png' into two, '1' and '2'"),
    ):
        (tmp_path / "groups.csv").write_text(text)
        with pytest.raises(ProtoPFaithError, match=message):
            read_groups(tmp_path / "groups.csv", listing)
    with pytest.raises(ProtoPFaithError, match="There is no file"):
        read_groups(tmp_path / "nowhere.csv", listing)


def test_splits_that_part_a_group_are_told() -> None:
    assert parted(["p", "p", "q"], ["train", "train", "test"]) == []
    (note,) = parted(["p", "p", "q"], ["train", "test", "test"])
    assert note.startswith("Images that belong together (p) are in several")


def named_pictures(root: Path, names: list[str]) -> Path:
    random = np.random.default_rng(0)
    for label in ("ill", "well"):
        (root / label).mkdir(parents=True)
    for number, name in enumerate(names):
        pixels = random.integers(0, 255, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / ("ill", "well")[number % 2] / name)
    return root


@pytest.mark.parametrize(
    "pattern",
    ["person{0}_virus_{1}.png", "Patient-{0}-{1}.png", "IM-{0:04}-{1:04}.png", "VIRUS-{0:06}-{1:04}.png"],
)
def test_file_names_that_tell_patients(tmp_path: Path, pattern: str) -> None:
    names = [pattern.format(number // 3, number) for number in range(60)]
    root = named_pictures(tmp_path / "images", names)
    found, (sentence,) = named_groups(list_folder(root))
    assert len(set(found.values())) == 20
    assert "60 images into 20 groups" in sentence
    data = load_data("folder", root=root, size=8, groups="names")
    splits = [{found[path] for path in images.paths} for images in data.sets().values()]
    assert sum(map(len, splits)) == len(set().union(*splits)) == 20
    assert sentence in data.notes
    assert not load_data("folder", root=root, size=8, groups="none").notes


@pytest.mark.parametrize(
    "pattern", ["{0}.png", "img_{0}.png", "img-{0:04}.png", "case{1}.png", "patient1_{0}.png"]
)
def test_file_names_that_tell_nothing(tmp_path: Path, pattern: str) -> None:
    names = [pattern.format(number, number) for number in range(40)]
    root = named_pictures(tmp_path / "images", names)
    found, (sentence,) = named_groups(list_folder(root))
    assert found == {}
    assert "File names tell no groups" in sentence
    assert sentence in load_data("folder", root=root, size=8, groups="names").notes


@pytest.mark.parametrize("groups", [3, 2.5, ["p.csv"], {"a": "p"}])
def test_groups_that_are_no_path_are_one_sentence(tmp_path: Path, groups: object) -> None:
    root = named_pictures(tmp_path / "images", [f"{number}.png" for number in range(12)])
    with pytest.raises(ProtoPFaithError, match="The groups must be a path"):
        load_data("folder", root=root, size=8, groups=groups)
