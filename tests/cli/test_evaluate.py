from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from PIL import Image

from tests.cli.conftest import CLASSES, fails_with, protopfaith


def test_evaluate_writes_numbers_and_a_picture(place: Path, run: Path) -> None:
    done = protopfaith(place, "evaluate", str(run), "--split", "train", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    values = json.loads((run / "evaluation" / "train.json").read_text())
    assert sum(map(sum, values["confusion"])) == values["images"]
    assert Image.open(run / "evaluation" / "train-confusion.png").size[0] > 300
    assert "balanced accuracy" in done.stdout
    assert "Expected calibration error" in done.stdout
    assert values["calibration"]["temperature"] > 0
    assert (run / "evaluation" / "train-reliability.png").is_file()
    assert "distinct" in done.stdout
    assert "within a class" in done.stdout
    assert values["distinct_prototypes"].keys() == set(CLASSES)


def test_a_run_finds_its_images_from_another_folder(place: Path, run: Path, tmp_path: Path) -> None:
    assert protopfaith(tmp_path, "evaluate", str(run)).returncode == 0
    moved = tmp_path / "moved"
    shutil.copytree(place / "images", moved)
    done = protopfaith(tmp_path, "evaluate", str(run), "--root", str(moved))
    assert done.returncode == 0, done.stderr


def table_of(place: Path, folder: Path) -> Path:
    """The images of the run and new ones, in a CSV file with sites."""
    shutil.copytree(place / "images", folder / "clinic")
    for name in CLASSES:
        for number in range(12):
            path = folder / "clinic" / name / f"{number}.png"
            image = Image.open(path)
            image.putpixel((0, 0), (number, 7, 9))
            image.save(path)
    lines = ["file,label,patient,site"]
    lines += [f"{c}/{n}.png,{c},p{n},{'north' if n < 6 else 'south'}" for c in CLASSES for n in range(12)]
    (folder / "clinic" / "list.csv").write_text("\n".join(lines))
    return folder / "clinic" / "list.csv"


def test_evaluate_on_images_from_elsewhere(place: Path, run: Path, tmp_path: Path) -> None:
    table = table_of(place, tmp_path)
    done = protopfaith(
        place, "evaluate", str(run), "--data", str(table), "--resamples", "50", "--device", "cpu"
    )
    assert done.returncode == 0, done.stderr
    for words in ("external: list", "internal test set", "difference", "site: north", "Written to"):
        assert words in done.stdout
    values = json.loads((run / "evaluation" / "external-list.json").read_text())
    assert values["images"] == 36
    assert values["rows"][0]["groups"] == 12
    assert Image.open(run / "evaluation" / "external-list-compared.png").size[0] > 300


def test_a_folder_from_elsewhere_with_bad_files(place: Path, run: Path, tmp_path: Path) -> None:
    folder = table_of(place, tmp_path).parent
    (folder / "blue" / "broken.png").write_bytes(b"no image")
    (folder / "violet").mkdir()
    shutil.copy(folder / "blue" / "1.png", folder / "violet" / "1.png")
    options = ["--resamples", "50", "--no-compare", "--device", "cpu"]
    done = protopfaith(place, "evaluate", str(run), "--data", "folder", "--root", str(folder), *options)
    assert done.returncode == 1
    assert "broken.png" in done.stderr
    assert "'violet' (1)" in done.stdout
    assert "internal" not in done.stdout
    assert json.loads((run / "evaluation" / "external-clinic.json").read_text())["images"] == 36


def test_without_its_own_images_there_is_no_comparison(place: Path, run: Path, tmp_path: Path) -> None:
    table = table_of(place, tmp_path)
    shutil.copytree(run, tmp_path / "run")
    recipe = (tmp_path / "run" / "recipe.yaml").read_text()
    (tmp_path / "run" / "recipe.yaml").write_text(
        recipe.replace(str(place / "images"), str(tmp_path / "gone"))
    )
    done = protopfaith(place, "evaluate", str(tmp_path / "run"), "--data", str(table), "--resamples", "50")
    assert done.returncode == 0, done.stderr
    assert "no comparison" in done.stderr
    assert "internal" not in done.stdout
    moved = ["--own-root", str(place / "images"), "--resamples", "50"]
    done = protopfaith(place, "evaluate", str(tmp_path / "run"), "--data", str(table), *moved)
    assert done.returncode == 0, done.stderr
    assert "internal test set" in done.stdout


def test_options_of_external_data_need_it(place: Path, run: Path) -> None:
    fails_with(protopfaith(place, "evaluate", str(run), "--subgroups", "sex"), "--subgroups", "--data")
    fails_with(protopfaith(place, "evaluate", str(run), "--data", "images", "--subgroups", "sex"), "sex")
    fails_with(protopfaith(place, "evaluate", str(run), "--data", "images", "--subgroups", ","), "commas")


def test_groups_that_are_not_there_are_told_at_once(place: Path, run: Path) -> None:
    done = protopfaith(place, "evaluate", str(run), "--data", str(place / "images"), "--groups", "nope.csv")
    fails_with(done, "no CSV file of image and patient at nope.csv")
    assert "Loading" not in done.stderr


def test_nothing_in_a_table_drives_the_terminal(place: Path, run: Path, tmp_path: Path) -> None:
    table = table_of(place, tmp_path)
    strange = table.read_text().replace("north", "\x1b[31ma").replace("south", "[red]b\x07")
    table.write_text(strange)
    shown = ["--data", str(table), "--no-compare", "--resamples", "50", "--device", "cpu"]
    done = protopfaith(place, "evaluate", str(run), *shown)
    assert done.returncode == 0, done.stderr
    assert r"\x1b[31ma" in done.stdout
    assert r"[red]b\x07" in done.stdout
    assert done.stdout.replace("\n", "").isprintable()


def test_a_pipe_in_the_place_of_the_measurement_is_told_before_the_work(
    place: Path, run: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(run, tmp_path / "run")
    (moved / "reference.json").unlink(missing_ok=True)
    os.mkfifo(moved / "reference.json")
    done = protopfaith(place, "evaluate", str(moved))
    fails_with(done, "reference.json is no plain file, where a file is expected")
    assert "Loading" not in done.stderr
