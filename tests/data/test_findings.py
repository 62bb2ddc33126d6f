"""Images with several findings: tables as people have them, and as they go wrong."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from protopfaith.data import ImageData, load_data
from protopfaith.data.findings import as_finding, known_findings, list_findings
from protopfaith.data.table import read_table
from protopfaith.errors import ProtoPFaithError

Save = Callable[..., Path]
COUNT = 60


def rows(edema: Callable[[int], str], mass: Callable[[int], str]) -> str:
    lines = [f"{i}.png,p{i // 2},{edema(i)},{mass(i)},{30 + i}" for i in range(COUNT)]
    return "\n".join(["file,patient,Edema,Mass,age", *lines])


@pytest.fixture
def root(tmp_path: Path, save: Save) -> Path:
    folder = tmp_path / "lungs"
    for i in range(COUNT):
        save(folder / f"{i}.png", i)
    (folder / "labels.csv").write_text(rows(lambda i: str(int(i % 4 < 2)), lambda i: str(int(i % 12 < 2))))
    return folder


def load(root: Path, **options) -> ImageData:
    return load_data("findings", root=root, size=16, **options)


def test_columns_of_ones_and_zeros_are_findings(root: Path) -> None:
    data = load(root)
    assert data.classes == ("Edema", "Mass")
    assert data.outcome == "several"
    for images in data.sets().values():
        for record, label in zip(images.records, images.labels, strict=True):
            number = int(Path(record.path).stem)
            assert label.tolist() == [number % 4 < 2, number % 12 < 2]
            assert record.about == {"age": str(30 + number)}
            assert record.group == f"p{number // 2}"


def test_patients_stay_in_one_split_and_findings_are_spread(root: Path) -> None:
    data = load(root)
    groups = [{record.group for record in images.records} for images in data.sets().values()]
    assert sum(map(len, groups)) == len(set.union(*groups)) == COUNT // 2
    for images in data.sets().values():
        share = images.labels.mean(0)
        assert 0.3 < float(share[0]) < 0.7
        assert float(share[1]) > 0


@pytest.mark.parametrize("there", [1, 2, 4])
def test_a_finding_of_one_or_two_patients_is_there_in_training(root: Path, there: int) -> None:
    (root / "labels.csv").write_text(rows(lambda i: str(i % 2), lambda i: str(int(i < there))))
    for seed in range(4):
        data = load(root, seed=seed)
        assert bool((data.train.labels[:, 1] == 1).any())
        assert sum(len(images) for images in data.sets().values()) == COUNT


@pytest.mark.parametrize("word", ["", "-1", "nan", "-1.0", "NA"])
def test_missing_labels_are_not_a_number(root: Path, word: str) -> None:
    (root / "labels.csv").write_text(
        rows(lambda i: word if i % 5 == 0 else str(int(i % 4 < 2)), lambda i: str(int(i % 12 < 2)))
    )
    data = load(root)
    for images in data.sets().values():
        for record, label in zip(images.records, images.labels, strict=True):
            assert bool(label[0].isnan()) == (int(Path(record.path).stem) % 5 == 0)
            assert not label[1].isnan()


def test_a_column_of_lists(root: Path) -> None:
    names = ["Edema|Mass", "No Finding", "Mass", "Edema"]
    lines = [f"{i}.png,{names[i % 4]}" for i in range(COUNT)]
    (root / "list.csv").write_text("\n".join(["Image Index,Finding Labels", *lines]))
    data = load(root, table="list.csv")
    assert data.classes == ("Edema", "Mass")
    for record in data.train.records:
        assert record.findings == [(1, 1), (0, 0), (0, 1), (1, 0)][int(Path(record.path).stem) % 4]
    other = "\n".join(["file,what", *(line.replace("|", ";") for line in lines)])
    (root / "list.csv").write_text(other)
    assert load(root, table="list.csv", labels="what", separator=";").classes == ("Edema", "Mass")


@pytest.mark.parametrize(
    "names",
    [
        ["Edema;Mass", "none", "Mass", "Edema"],
        ["Edema, Mass", "normal", "Mass", "Edema"],
        ["['Edema', 'Mass']", "[]", "['Mass']", "['Edema']"],
    ],
)
def test_lists_of_every_kind_are_understood(names: list[str], root: Path) -> None:
    lines = [f'{i}.png,"{names[i % 4]}"' for i in range(COUNT)]
    (root / "list.csv").write_text("\n".join(["file,labels", *lines]))
    listing = list_findings(root, "list.csv")
    assert listing.classes == ("Edema", "Mass")
    assert [entry.findings for entry in listing.entries[:4]] == [(1, 1), (0, 0), (0, 1), (1, 0)]


def test_a_comma_within_a_name_is_part_of_it(root: Path) -> None:
    lines = [f'{i}.png,"{["pneumonia, viral", "edema, mild", "normal"][i % 3]}"' for i in range(COUNT)]
    (root / "list.csv").write_text("\n".join(["file,labels", *lines]))
    assert list_findings(root, "list.csv").classes == ("edema, mild", "pneumonia, viral")


def test_lists_that_contradict_themselves_are_told(root: Path) -> None:
    cells = ["No Finding|Edema", "Edema", "Mass", "No Finding"]
    lines = [f"{i}.png,{cells[i % 4] if i < 4 else cells[i % 3 + 1]}" for i in range(COUNT)]
    (root / "labels.csv").write_text("\n".join(["file,labels", *lines]))
    listing = list_findings(root)
    assert listing.entries[0].findings == (1, 0)
    assert any("Row 2 of labels.csv says that nothing was found, and what" in note for note in listing.notes)


@pytest.mark.parametrize("header", ["file,labels", "file,lung_mass,Lung Mass"])
def test_findings_of_almost_the_same_name_are_refused(header: str, root: Path) -> None:
    """A label that is written in two ways would count as not there where it is written the other way."""
    cells = ["Lung Mass", "lung_mass", "No Finding"] if "labels" in header else ["1,0", "0,1", "0,0"]
    lines = [f"{i}.png,{cells[i % 3]}" for i in range(COUNT)]
    (root / "labels.csv").write_text("\n".join([header, *lines]))
    with pytest.raises(ProtoPFaithError, match=r"'(Lung Mass|lung_mass)' and '(Lung Mass|lung_mass)'"):
        list_findings(root)


@pytest.mark.parametrize(
    "cells",
    [
        ["Edema|Mass", "Edema", "Mass", "No Finding"],
        ["Edema;Mass", "Edema", "No Finding"],
        ["edema, mass", "No Finding"],
        ["['Edema', 'Mass']", "['Mass']", "[]"],
        ["Edema, acute; Mass", "Mass; Edema", "Mass"],
    ],
)
def test_lists_say_the_same_of_findings_that_are_known(cells: list[str], root: Path) -> None:
    """In a table of images from elsewhere, however few of them there are."""
    lines = [f'{i}.png,"{cells[i % len(cells)]}"' for i in range(COUNT)]
    (root / "labels.csv").write_text("\n".join(["file,labels", *lines]))
    values, _, absent = known_findings(read_table(root / "labels.csv", "a table"), ["Edema", "Mass"])
    for i, value in enumerate(values):
        words = [part.strip(" []'").lower() for part in re.split(r"[|;]|, (?!acute)", cells[i % len(cells)])]
        assert value == ("edema" in words, "mass" in words)
    assert absent == []


def test_empty_columns_are_told_and_too_many_refused(root: Path) -> None:
    lines = [f"{i}.png,{i % 2}," for i in range(COUNT)]
    (root / "labels.csv").write_text("\n".join(["file,Edema,Mass", *lines]))
    assert any("'Mass' of labels.csv is empty" in note for note in list_findings(root).notes)
    names, bits = [f"f{k}" for k in range(1001)], ["0,1"[::2][i % 2] for i in range(1001)]
    (root / "labels.csv").write_text("\n".join([",".join(["file", *names]), ",".join(["0.png", *bits])]))
    with pytest.raises(ProtoPFaithError, match="1,001 columns of 1 and 0"):
        list_findings(root)


@pytest.mark.parametrize(("cell", "told"), [("1", True), ("0", True), ("", False), ("17", False)])
def test_a_column_without_a_name_is_told_where_it_may_be_a_finding(root: Path, cell: str, told: bool) -> None:
    lines = (root / "labels.csv").read_text().splitlines()
    (root / "labels.csv").write_text("".join(f"{line},{cell if i else ''}\n" for i, line in enumerate(lines)))
    nameless = [note for note in list_findings(root).notes if "has no name" in note]
    assert nameless == [f"Column {lines[0].count(',') + 2} of labels.csv has no name and is left out."] * told


def test_images_without_any_label_are_left_out(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    (root / "labels.csv").write_text(
        rows(lambda i: "" if i < 4 else str(i % 2), lambda i: "" if i < 4 else str(int(i % 3 == 0)))
    )
    with caplog.at_level(logging.WARNING):
        data = load(root)
    assert sum(map(len, data.sets().values())) == COUNT - 4
    assert "4 images in labels.csv have no known label" in caplog.text


def test_a_column_split_is_kept(root: Path) -> None:
    lines = (root / "labels.csv").read_text().splitlines()
    splits = ["train"] * 40 + ["val"] * 10 + ["test"] * 10
    text = "\n".join([f"{lines[0]},split", *(f"{a},{b}" for a, b in zip(lines[1:], splits, strict=True))])
    (root / "labels.csv").write_text(text)
    assert [len(images) for images in load(root).sets().values()] == [40, 10, 10]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no images"),
        ("file,Edema\n", "lists no images"),
        ("name,Edema\n0.png,1\n", "has no column 'file'"),
        ("file,Edema,edema\n0.png,1,0\n", "two columns named 'edema'"),
        ("file,Edema\n0.png,1,1\n", "Row 2 of"),
        ("file,Edema\n0.png,1\n0.png,0\n", "more than once"),
        ("file,Edema\nnowhere.png,1\n", "are not in"),
        ("file,Edema\n../0.png,1\n", "does not lie below"),
        ("file,age\n0.png,61\n", "no column of findings"),
        ("file,Edema\n0.png,\n1.png,\n", "no column of findings"),
        ("file,Edema,split\n0.png,1,never\n", "write train, validation or test"),
        ("file,Edema\n" + "\n".join(f"{i}.png,1" for i in range(COUNT)), "is never absent in a training"),
        ("file,Edema\n" + "\n".join(f"{i}.png,0" for i in range(COUNT)), "is never there in a training"),
        ("file,Edema\n\n" + "\n".join(f"{i}.png,{'maybe' if i == 9 else i % 2}" for i in range(COUNT)),
         "Row 12 of .* has 'maybe' for 'Edema'"),
        ("file,findings\n0.png,No Finding\n1.png,No Finding\n", "0 different labels"),
    ],
)  # fmt: skip
def test_bad_tables_are_one_sentence(root: Path, text: str, words: str) -> None:
    (root / "labels.csv").write_text(text)
    with pytest.raises(ProtoPFaithError, match=words) as caught:
        load(root)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "nowhere.csv"}, "There is no table"),
        ({"findings": ["Edma"]}, "did you mean 'Edema'"),
        ({"findings": []}, "at least one finding"),
        ({"findings": "Edema"}, "a list of column names"),
        ({"findings": ["Edema", "Edema"]}, "each once"),
        ({"findings": ["age"]}, "has '30' for 'age'"),
        ({"labels": "nothing"}, "has no column 'nothing'"),
        ({"labels": "age", "findings": ["Edema"]}, "give one"),
        ({"labels": "age", "separator": ""}, "separator"),
        ({"patient": "person"}, "has no column 'person'"),
    ],
)
def test_bad_options_are_one_sentence(root: Path, options: dict, words: str) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        load(root, **options)


def test_a_column_that_may_be_meant_is_told(root: Path) -> None:
    lines = [f"{i}.png,{i % 2},{i % 3}" for i in range(COUNT)]
    (root / "labels.csv").write_text("\n".join(["file,Edema,visits", *lines]))
    listing = list_findings(root)
    assert listing.classes == ("Edema",)
    assert any("'visits'" in note for note in listing.notes)


@pytest.mark.parametrize(
    "name", ["sex", "is_male", "Patient Gender", "Female", "age_group", "fold", "No Finding"]
)
def test_what_is_said_about_patients_is_no_finding(name: str, root: Path) -> None:
    lines = [f"{i}.png,{i % 2},{i % 3 // 2}" for i in range(COUNT)]
    (root / "labels.csv").write_text("\n".join([f"file,{name},Edema", *lines]))
    listing = list_findings(root)
    assert listing.classes == ("Edema",)
    assert any(repr(name) in note and "data.options.findings" in note for note in listing.notes)
    assert listing.entries[1].about == {name.lower(): "1"}
    assert list_findings(root, findings=[name, "Edema"]).classes == (name, "Edema")


def test_the_fingerprint_changes_with_a_label(root: Path) -> None:
    before = load(root).fingerprint
    text = (root / "labels.csv").read_text().replace("6.png,p3,0", "6.png,p3,1")
    (root / "labels.csv").write_text(text)
    assert load(root).fingerprint != before


def test_two_classes_become_one_finding() -> None:
    data = load_data("birds", size=16, train=16, validation=8, test=8)
    found = as_finding(data, "Marsh Orrin")
    assert found.classes == ("Marsh Orrin",)
    assert torch.equal(found.train.labels[:, 0] == 1, data.train.labels == 0)
    assert torch.equal(found.train.uint8(), data.train.uint8())
    with pytest.raises(ProtoPFaithError, match="There is no class"):
        as_finding(data, "Dodo")


def test_the_folder_without_a_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.png").write_bytes(b"")
    with pytest.raises(ProtoPFaithError, match=r"no table labels\.csv in the folder .*mine"):
        load_data("findings", root=tmp_path / "mine")
