from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.cli.conftest import CLASSES, TINY, fails_with, protopfaith
from tests.data.dicom_files import write_dicom


def test_predict_does_the_rest_when_one_file_is_broken(place: Path, run: Path) -> None:
    (place / "broken.png").write_bytes(b"not an image")
    some = [
        str(place / "images" / "red" / "0.png"),
        str(place / "broken.png"),
        str(place / "images" / "blue"),
    ]
    done = protopfaith(place, "predict", str(run), *some, "--csv", "out.csv")
    fails_with(done, "broken.png")
    lines = [line.split("\t") for line in done.stdout.splitlines()]  # long paths are not wrapped
    assert [line[0] for line in lines[:2]] == [some[0], f"{some[2]}/0.png"]
    assert all(line[3:] in ([], ["unfamiliar"]) for line in lines)
    rows = list(csv.DictReader((place / "out.csv").open()))
    assert len(rows) == 1 + 1 + 12
    assert rows[1]["error"]
    assert rows[1]["familiar"] == ""
    said = [{"": [], "yes": [], "no": ["unfamiliar"]}[row["familiar"]] for row in rows if not row["error"]]
    assert [line[3:] for line in lines] == said
    for row in rows[2:]:
        assert row["class"] in CLASSES
        assert sum(float(row[name]) for name in CLASSES) == pytest.approx(1, abs=1e-5)


def test_the_same_pixels_have_the_same_class_from_dicom_and_png(tmp_path: Path) -> None:
    """Trained on DICOM files of 12 bits; images of one patient stay together."""
    random = np.random.default_rng(0)
    for label, bright in (("dark", 900), ("light", 3000)):
        for number in range(14):
            values = random.integers(0, bright, (24, 24), dtype=np.uint16)
            path = tmp_path / "images" / label / f"{number}.dcm"
            write_dicom(path, values, PatientID=f"{label} {number // 2}")
    Image.fromarray(values).save(tmp_path / "same.png")
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({**TINY, "optimization": {"batch_size": 8}}))
    made = [
        "train",
        "tiny.yaml",
        "--root",
        "images",
        "data.bits=12",
        "data.options={channels: 1}",
        "--out",
        "run",
    ]
    done = protopfaith(tmp_path, *made)
    assert done.returncode == 0, done.stderr
    done = protopfaith(tmp_path, "predict", "run", "images/light/13.dcm", "same.png")
    assert done.returncode == 0, done.stderr
    one, other = (line.split("\t")[1:] for line in done.stdout.splitlines())
    assert one == other
    explained = protopfaith(tmp_path, "explain", "run", "same.png", "--quick", "--out", "out")
    assert explained.returncode == 0, explained.stderr


def test_pages_of_a_file_are_classified_one_by_one(place: Path, run: Path, tmp_path: Path) -> None:
    pages = [Image.open(place / "images" / name / "1.png") for name in ("blue", "green", "red")]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    done = protopfaith(place, "predict", str(run), str(tmp_path / "pages.tif"), "--frame", "all")
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0].rpartition("/")[2] for line in done.stdout.splitlines()] == [
        "pages.tif#1",
        "pages.tif#2",
        "pages.tif#3",
    ]
    alone = [
        protopfaith(place, "predict", str(run), str(place / "images" / name / "1.png")).stdout.split("\t")[1:]
        for name in ("blue", "green", "red")
    ]
    assert [line.split("\t")[1:] for line in done.stdout.splitlines()] == [
        [one.rstrip("\n") for one in parts] for parts in alone
    ]
    one = protopfaith(place, "predict", str(run), str(tmp_path / "pages.tif#2"))
    assert one.returncode == 0, one.stderr
    missing = protopfaith(place, "predict", str(run), str(tmp_path / "pages.tif"), "--frame", "4")
    fails_with(missing, "no frame 4")


def test_results_replace_results_and_no_other_tables(place: Path, run: Path, tmp_path: Path) -> None:
    image, labels, key = place / "images" / "red" / "0.png", tmp_path / "labels.csv", tmp_path / "o-key.csv"
    for table in (labels, key):
        table.write_text("file,label\n0.png,red\n")
    predict = ("predict", str(run), str(image), "--csv")
    fails_with(protopfaith(place, *predict, str(labels)), "labels.csv is there already")
    fails_with(
        protopfaith(place, *predict, str(tmp_path / "o.csv"), "--anonymous"), "o-key.csv is there already"
    )
    assert labels.read_text() == key.read_text() == "file,label\n0.png,red\n"
    assert not (tmp_path / "o.csv").exists()
    key.unlink()
    for _ in range(2):  # results of before are replaced
        done = protopfaith(place, *predict, str(tmp_path / "o.csv"), "--anonymous")
        assert done.returncode == 0, done.stderr
    assert key.read_text().startswith("name,file\n")
