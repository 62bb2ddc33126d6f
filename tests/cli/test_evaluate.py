from __future__ import annotations

import json
import shutil
from pathlib import Path

from PIL import Image

from tests.cli.conftest import CLASSES, protopfaith


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
