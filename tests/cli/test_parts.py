from __future__ import annotations

import json
import shutil
from pathlib import Path

from protopfaith.training import Run, train
from protopfaith.training.recipe import recipe_from_dict
from tests.cli.conftest import TINY, fails_with, protopfaith


def birds(folder: Path) -> Run:
    data = {"name": "birds", "size": [24, 24], "options": {"train": 16, "validation": 8, "test": 8}}
    return train(recipe_from_dict({**TINY, "data": data}), folder, progress=False)


def test_parts_of_birds(place: Path, tmp_path: Path) -> None:
    run = birds(tmp_path / "birds")
    options = ["--classes", "2", "--images", "1", "--budget", "128", "--device", "cpu"]
    done = protopfaith(place, "parts", str(run.folder), *options)
    assert done.returncode == 0, done.stderr
    for words in ("ours", "protopnet", "consistency", "stability", "parts per class"):
        assert words in done.stdout
    values = json.loads((run.folder / "evaluation" / "parts.json").read_text())
    assert values["classes"] == 2
    assert (run.folder / "evaluation" / "parts.png").is_file()
    quick = ["--players", "12", "--budget", "64", "--device", "cpu"]
    shown = protopfaith(place, "prototypes", str(run.folder), *quick)
    assert shown.returncode == 0, shown.stderr
    page = (run.folder / "prototypes" / "prototypes.html").read_text(encoding="utf-8")
    assert page.count("In images of its class") == 4


def test_data_without_parts_is_one_sentence(place: Path, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    fails_with(protopfaith(place, "parts", str(tmp_path / "run")), "no part locations")
    fails_with(
        protopfaith(place, "parts", str(tmp_path / "run"), "--explainers", "ours,,protopnet"), "commas"
    )
