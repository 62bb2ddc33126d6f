"""Images from elsewhere: folders, tables and data sets, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protopfaith.data import Preprocessing
from protopfaith.data.external import load_external
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import sha256
from tests.data.dicom_files import write_dicom

PREPROCESSING = Preprocessing((12, 12))
Save = Callable[..., Path]


@pytest.fixture
def pictures(tmp_path: Path, save: Save) -> Path:
    root = tmp_path / "clinic"
    for number, name in enumerate(("cat/1.png", "cat/2.png", "dog/1.png")):
        save(root / name, number)
    return root


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


@pytest.fixture
def birds_cache(cache: Path, drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the test's own: 1,400 birds take seconds to draw, which one test does for all."""
    monkeypatch.setenv("PROTOPFAITH_CACHE", str(drawn))


@pytest.mark.parametrize("by_name", [True, False])
def test_a_folder_has_its_classes(pictures: Path, by_name: bool) -> None:
    where = {"data": "folder", "root": pictures} if by_name else {"data": str(pictures)}
    found = load_external(preprocessing=PREPROCESSING, **where)  # type: ignore[arg-type]
    assert [(sample.path, sample.label) for sample in found.samples] == [
        ("cat/1.png", "cat"),
        ("cat/2.png", "cat"),
        ("dog/1.png", "dog"),
    ]
    assert found.pixels(0).shape == (3, 12, 12)
    assert found.pixels(0).dtype == torch.uint8
    assert found.sha256(2) == sha256(pictures / "dog/1.png")


def test_splits_are_taken_together(tmp_path: Path, save: Save) -> None:
    for number, name in enumerate(("train/cat/1.png", "test/cat/2.png", "val/dog/1.png")):
        save(tmp_path / "all" / name, number)
    found = load_external(str(tmp_path / "all"), PREPROCESSING)
    assert sorted(sample.label for sample in found.samples) == ["cat", "cat", "dog"]


def test_a_folder_takes_groups(pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("image,patient\ncat/1.png,p\ncat/2.png,p\ndog/1.png,q\n")
    found = load_external(str(pictures), PREPROCESSING, groups=tmp_path / "groups.csv")
    assert [sample.group for sample in found.samples] == ["p", "p", "q"]


def test_a_folder_at_home_takes_groups(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(pictures.parent))
    monkeypatch.setenv("USERPROFILE", str(pictures.parent))
    (pictures.parent / "groups.csv").write_text("cat/1.png,p\ncat/2.png,p\ndog/1.png,q\n")
    found = load_external("~/clinic", PREPROCESSING, groups=pictures.parent / "groups.csv")
    assert [sample.group for sample in found.samples] == ["p", "p", "q"]


def test_names_of_files_say_groups(tmp_path: Path, save: Save) -> None:
    for number in range(60):
        label = "cat" if number % 2 else "dog"
        save(tmp_path / "clinic" / label / f"patient{number // 3}_{number}.png", number, (8, 8))
    found = load_external(str(tmp_path / "clinic"), PREPROCESSING, groups="names")
    assert len({sample.group for sample in found.samples}) == 20
    assert "20 groups" in found.notes[0]


def test_a_table_has_groups_and_what_else_is_known(pictures: Path) -> None:
    table = pictures / "list.csv"
    table.write_text("Class,File,Patient_ID,Sex,Age\ncat,cat\\1.png,p1,F,33\ndog,dog/1.png,,,\n")
    found = load_external(str(table), PREPROCESSING)
    assert found.name == "list"
    first, second = found.samples
    assert (first.path, first.label, first.group) == ("cat/1.png", "cat", "p1")
    assert first.about == {"sex": "F", "age": "33"}
    assert (second.group, second.about) == ("", {})


def test_columns_may_have_the_names_of_large_collections(pictures: Path) -> None:
    (pictures / "list.csv").write_text("Image Index,Label,Patient ID\ncat/1.png,cat,p1\n")
    (sample,) = load_external(str(pictures / "list.csv"), PREPROCESSING).samples
    assert (sample.path, sample.group, sample.about) == ("cat/1.png", "p1", {})


def test_a_table_may_lie_elsewhere(pictures: Path, tmp_path: Path) -> None:
    table = tmp_path / "list.csv"
    table.write_text("file,label\ncat/1.png,cat\n")
    assert load_external(str(table), PREPROCESSING, root=pictures).pixels(0).shape == (3, 12, 12)


def test_headers_of_dicom_files_name_patients(tmp_path: Path) -> None:
    pixels = np.zeros((10, 10), np.uint8)
    write_dicom(tmp_path / "a/cat/1.dcm", pixels, PatientID="p7", PatientSex="F", PatientAge="051Y")
    (sample,) = load_external(str(tmp_path / "a"), PREPROCESSING).samples
    assert (sample.group, sample.about) == ("p7", {"sex": "F", "age": "51"})


def test_an_unreadable_file_raises_where_it_is_read(pictures: Path) -> None:
    (pictures / "dog/2.png").write_bytes(b"no image")
    found = load_external(str(pictures), PREPROCESSING)
    assert found.pixels(2).shape == (3, 12, 12)
    with pytest.raises(ProtoPFaithError, match=r"dog/2\.png"):
        found.pixels(3)


@pytest.mark.usefixtures("birds_cache")
def test_a_data_set_gives_all_of_its_splits() -> None:
    found = load_external("birds", PREPROCESSING)
    assert len(found) == 1400
    assert len({found.sha256(index) for index in range(len(found))}) == len(found)
    assert {sample.path.split("/")[0] for sample in found.samples} >= {"train", "test"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no images"),
        ("file,label\n", "lists no images"),
        ("name,label\na.png,cat\n", "no column 'file'"),
        ("file,kind\na.png,cat\n", "no column 'label'"),
        ("file,label\na.png\n", "Row 2"),
        ("file,label,label\na.png,cat,dog\n", "two columns"),
        ("file,label\n../a.png,cat\n", "does not lie below"),
        ("file,label\n/etc/passwd,cat\n", "does not lie below"),
        ("file,label\na.png,cat\na.png,dog\n", "more than once"),
        ("file,label\na.png,cat\n./a.png,dog\n", "more than once"),
        ("file,label\nbirds/a.png,cat\nbirds\\.\\a.png,dog\n", "more than once"),
        ('file,label\n"a.png,cat\n', "cannot be read as a table"),
    ],
)
def test_bad_tables_are_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(ProtoPFaithError, match=words):
        load_external(str(tmp_path / "list.csv"), PREPROCESSING)


def test_bad_places_are_one_sentence(tmp_path: Path, pictures: Path) -> None:
    (tmp_path / "empty").mkdir()
    for data, words in (
        ("", "no name"),
        ("bird", "did you mean 'birds'"),
        (str(tmp_path / "empty"), "is empty"),
    ):
        with pytest.raises(ProtoPFaithError, match=words):
            load_external(data, PREPROCESSING)
    with pytest.raises(ProtoPFaithError, match="--root"):
        load_external("folder", PREPROCESSING)
    with pytest.raises(ProtoPFaithError, match="no class folders"):
        load_external(str(pictures / "cat"), PREPROCESSING)
    with pytest.raises(ProtoPFaithError, match="column named patient"):
        load_external("birds", PREPROCESSING, groups=tmp_path / "groups.csv")
    with pytest.raises(ProtoPFaithError, match="column named patient"):
        load_external("t.csv", PREPROCESSING, groups=tmp_path / "groups.csv", findings=["edema"])


# --- several findings

FINDINGS = ("lung opacity", "edema", "mass")


def finding_table(folder: Path, text: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "list.csv").write_text(text)
    return str(folder / "list.csv")


def test_a_table_has_one_column_per_finding(tmp_path: Path, save: Save) -> None:
    for number in range(3):
        save(tmp_path / "x" / f"{number}.png", number)
    text = "file,patient,site,Edema,Lung_Opacity\n0.png,p,north,1,\n1.png,p,south,0,1\n2.png,q,,,0\n"
    found = load_external(finding_table(tmp_path / "x", text), PREPROCESSING, findings=FINDINGS)
    assert [sample.findings for sample in found.samples] == [(-1, 1, -1), (1, 0, -1), (0, -1, -1)]
    assert [sample.group for sample in found.samples] == ["p", "p", "q"]
    assert found.samples[0].about == {"site": "north"}
    assert "mass" in found.notes[0]
    assert found.pixels(1).shape == (3, 12, 12)


def test_a_table_may_have_lists_of_findings(tmp_path: Path) -> None:
    text = "file,Finding Labels\n0.png,Edema|Mass\n1.png,No Finding\n2.png,\n"
    found = load_external(finding_table(tmp_path / "x", text), PREPROCESSING, findings=FINDINGS)
    assert [sample.findings for sample in found.samples] == [(-1, 1, 1), (-1, 0, 0), (-1, -1, -1)]


@pytest.mark.usefixtures("birds_cache")
def test_findings_of_a_data_set_are_matched_by_name() -> None:
    from protopfaith.data import load_data

    birds = load_data("birds_multilabel", size=12)
    found = load_external("birds_multilabel", PREPROCESSING, findings=["Eye_Mask", "hat"])
    column = birds.classes.index("eye mask")
    records = [record for images in birds.sets().values() for record in images.records]
    assert [sample.findings for sample in found.samples] == [(r.findings[column], -1) for r in records]


@pytest.mark.usefixtures("birds_cache")
@pytest.mark.parametrize(
    ("data", "says"), [("birds", "one class each"), ("folder", "one class"), ("nothing", "nothing")]
)
def test_what_has_no_findings_is_refused(data: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match=says):
        load_external(data, PREPROCESSING, root=tmp_path if data == "folder" else None, findings=FINDINGS)


@pytest.mark.usefixtures("birds_cache")
def test_findings_are_no_classes() -> None:
    with pytest.raises(ProtoPFaithError, match="one class"):
        load_external("birds_multilabel", PREPROCESSING)


def test_absolute_paths_below_the_root_are_of_its_images(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        (tmp_path / "images" / label).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "images" / label / "1.png")
    lines = [f"{tmp_path}/images/{label}/1.png,{label}" for label in ("cat", "dog")]
    (tmp_path / "list.csv").write_text("\n".join(["file,label", *lines]))
    found = load_external(str(tmp_path / "list.csv"), PREPROCESSING, root=tmp_path / "images")
    assert [sample.path for sample in found.samples] == ["cat/1.png", "dog/1.png"]
    assert found.pixels(0).shape == (3, *PREPROCESSING.size)
    for outside in ("secret.png", "images/../secret.png", "images"):
        (tmp_path / "list.csv").write_text(f"file,label\n{tmp_path}/{outside},cat\n")
        with pytest.raises(ProtoPFaithError, match="does not lie below"):
            load_external(str(tmp_path / "list.csv"), PREPROCESSING, root=tmp_path / "images")
