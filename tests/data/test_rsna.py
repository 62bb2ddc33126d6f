"""RSNA: official DICOM files with the two official tables, and folders of pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from protopfaith.data import ImageData, load_data
from protopfaith.errors import ProtoPFaithError
from tests.data.dicom_files import write_dicom

Save = Callable[..., Path]
KINDS = ("Normal", "Lung Opacity", "No Lung Opacity / Not Normal")


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """90 pictures of 20 x 20 pixels in JPEG; every patient of the first two kinds has two of them."""
    root = tmp_path_factory.mktemp("rsna")
    details, boxes = ["patientId,class"], ["patientId,x,y,width,height,Target"]
    for i in range(90):
        name, kind = f"image{i:03d}", KINDS[i % 3]
        pixels = np.random.default_rng(i).integers(0, 256, (20, 20), dtype=np.uint8)
        person = f"patient{i // 6}-{i % 3}"
        age, sex = f"{20 + i % 50:03d}Y", "MF"[(i // 6) % 2]
        header = {"PatientID": person, "PatientAge": age, "PatientSex": sex}
        write_dicom(root / "stage_2_train_images" / f"{name}.dcm", pixels, "jpeg", **header)
        details.append(f"{name},{kind}")
        if kind == "Lung Opacity":
            # The official tables repeat a patient for each box.
            details.append(f"{name},{kind}")
            boxes += [f"{name},2.0,4.0,6.0,8.0,1", f"{name},10.0,4.0,4.0,4.0,1"]
        else:
            boxes.append(f"{name},,,,,0")
    (root / "stage_2_detailed_class_info.csv").write_text("\n".join(details))
    (root / "stage_2_train_labels.csv").write_text("\n".join(boxes))
    return root


@pytest.fixture
def copy(official: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(official, tmp_path / "rsna"))


def load(root: Path, **options: object) -> ImageData:
    return load_data("rsna", root=root, size=10, **options)  # type: ignore[arg-type]


def test_healthy_and_pneumonia_only(official: Path) -> None:
    data = load(official)
    assert data.classes == ("healthy", "pneumonia")
    labels = [label for images in data.sets().values() for label in images.labels.tolist()]
    assert Counter(labels) == {0: 30, 1: 30}
    assert data.train[0][0].shape == (1, 10, 10)
    assert data.notes == ()


def test_opacity_boxes_are_kept(official: Path) -> None:
    data = load(official)
    for images in data.sets().values():
        for i, label in enumerate(images.labels.tolist()):
            expected = [[1, 2, 4, 6], [5, 2, 7, 4]] if label else []
            assert images.boxes(i).tolist() == expected


def test_no_patient_is_in_two_splits_for_any_fold_and_seed(official: Path) -> None:
    def who(path: str) -> str:
        number = int(path.rsplit("image", maxsplit=1)[-1].removesuffix(".dcm"))
        return f"patient{number // 6}-{number % 3}"

    for seed in range(2):
        for fold in range(5):
            splits = load(official, fold=fold, seed=seed).splits()
            people = [{who(path) for path in paths} for paths in splits.values()]
            assert not people[0] & people[1]
            assert not people[0] & people[2]
            assert not people[1] & people[2]


def test_the_test_set_is_a_fifth_and_does_not_depend_on_the_fold(official: Path) -> None:
    tests = [tuple(load(official, fold=k).test.paths) for k in range(5)]
    assert len(set(tests)) == 1
    assert 10 <= len(tests[0]) <= 14


def test_test_set_is_stratified_by_class_sex_and_age(tmp_path: Path) -> None:
    """With many patients, one picture each, every stratum gives a fifth of itself."""
    from protopfaith.data.disk import Known
    from protopfaith.data.listing import Entry
    from protopfaith.data.rsna import split_rsna

    known, patients = [], {}
    for i in range(400):
        path = f"{i}.dcm"
        known.append(Known(Entry(path, ("healthy", "pneumonia")[i % 2]), f"sha{i}"))
        patients[path] = {"id": f"p{i}", "age": 30 + 10 * (i // 2 % 4), "sex": "MF"[i // 8 % 2]}
    split_of = split_rsna(known, patients, 0, 0)
    for split, share in {"test": 0.2, "validation": 0.16}.items():
        counts: Counter[tuple[object, ...]] = Counter()
        for item, own in zip(known, split_of, strict=True):
            person = patients[item.entry.path]
            counts[item.entry.label, person["age"], person["sex"]] += own == split
        assert all(abs(count - share * 25) <= 1 for count in counts.values())


@pytest.mark.parametrize("name", ["stage_2_train_labels.csv", "stage_2_detailed_class_info.csv"])
def test_what_is_missing_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(ProtoPFaithError, match=rf"{name} missing in .*Kaggle competition"):
        load(copy)


def test_a_label_without_image_is_named(copy: Path) -> None:
    (copy / "stage_2_train_images" / "image001.dcm").unlink()
    with pytest.raises(ProtoPFaithError, match=r"1 of 60 images .*image001.dcm"):
        load(copy)


def test_an_image_without_label_is_said(copy: Path) -> None:
    write_dicom(copy / "stage_2_train_images" / "stranger.dcm", np.zeros((20, 20), np.uint8))
    assert "1 images in stage_2_train_images/ have no label" in load(copy).notes[0]


@pytest.mark.filterwarnings("ignore:End of file reached")
def test_a_truncated_dicom_is_named_or_skipped(copy: Path) -> None:
    path = copy / "stage_2_train_images" / "image004.dcm"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ProtoPFaithError, match=r"image004.dcm cannot be read"):
        load(copy)
    data = load(copy, skip_unreadable=True)
    assert sum(map(len, data.sets().values())) == 59
    assert "image004.dcm" in data.notes[0]


def test_a_table_of_something_else(copy: Path) -> None:
    (copy / "stage_2_detailed_class_info.csv").write_text("name,kind\na,b\n")
    with pytest.raises(ProtoPFaithError, match="no column 'patientId'"):
        load(copy)


def test_a_wrong_folder(tmp_path: Path) -> None:
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / "readme.txt").write_text("hello")
    with pytest.raises(ProtoPFaithError, match=r"wrong is not RSNA: expected stage_2_train_images/"):
        load(tmp_path / "wrong")


@pytest.fixture
def pictures(tmp_path: Path, save: Save) -> Path:
    root = tmp_path / "pictures"
    lines = ["file,label"]
    for i in range(40):
        folder = ("normal", "lung_opacity")[i % 2]
        save(root / folder / f"{i}.png", i)
        lines.append(f"{folder}/{i}.png,{folder}")
    (root / "labels.csv").write_text("\n".join(lines))
    return root


@pytest.mark.parametrize("with_table", [True, False])
def test_pictures_are_split_by_class_and_that_is_said(pictures: Path, with_table: bool) -> None:
    if not with_table:
        (pictures / "labels.csv").unlink()
    data = load(pictures)
    assert data.classes == ("healthy", "pneumonia")
    assert all(
        ("lung" in path) == bool(label) for path, label in zip(data.test.paths, data.test.labels, strict=True)
    )
    assert Counter(data.test.labels.tolist()) == {0: 4, 1: 4}
    assert data.notes == ("No patient data came with these images: splits are stratified by class only.",)


def test_both_layouts_give_the_same_splits(pictures: Path) -> None:
    first = load(pictures).splits()
    (pictures / "labels.csv").unlink()
    assert load(pictures).splits() == first


def test_patients_in_the_label_file_are_used(pictures: Path) -> None:
    lines = (pictures / "labels.csv").read_text().splitlines()
    rows = [f"{line},p{i // 4},{30 + i},F" for i, line in enumerate(lines[1:])]
    (pictures / "labels.csv").write_text("\n".join(["file,label,patient,age,sex", *rows]))
    data = load(pictures)
    assert data.notes == ()
    split_of = {path: split for split, paths in data.splits().items() for path in paths}
    patients: dict[int, set[str]] = {}
    for path, split in split_of.items():
        patients.setdefault(int(Path(path).stem) // 4, set()).add(split)
    assert all(len(splits) == 1 for splits in patients.values())


def test_a_label_without_picture(pictures: Path) -> None:
    (pictures / "normal" / "0.png").unlink()
    with pytest.raises(ProtoPFaithError, match=r"1 of 40 images that labels.csv lists .*normal/0.png"):
        load(pictures)


def test_a_picture_without_label(pictures: Path, save: Save) -> None:
    save(pictures / "normal" / "new.png", 777)
    assert "normal/new.png" in load(pictures).notes[0]


def test_an_unknown_label(pictures: Path) -> None:
    content = (pictures / "labels.csv").read_text().replace("0.png,normal", "0.png,broken arm", 1)
    (pictures / "labels.csv").write_text(content)
    with pytest.raises(ProtoPFaithError, match="'broken arm'; expected normal"):
        load(pictures)
