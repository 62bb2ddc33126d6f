from __future__ import annotations

from pathlib import Path

import yaml
from safetensors import safe_open

from tests.cli.conftest import fails_with, protopfaith


def test_train_leaves_a_complete_run(place: Path, run: Path) -> None:
    for name in ("recipe.yaml", "environment.json", "metrics.csv", "model.safetensors", "last.safetensors"):
        assert (run / name).is_file()
    assert yaml.safe_load((run / "recipe.yaml").read_text())["data"]["root"] == str(place / "images")
    with safe_open(run / "model.safetensors", "pt") as file:
        assert file.get_tensor("prototypes").shape == (6, 8)


def test_resume_of_a_finished_run_changes_nothing(place: Path, run: Path) -> None:
    before = (run / "model.safetensors").read_bytes()
    done = protopfaith(place, "train", "--resume", "--out", "runs/tiny")
    assert done.returncode == 0, done.stderr
    assert (run / "model.safetensors").read_bytes() == before


def test_resume_takes_overrides_of_where_to_compute_and_refuses_others(place: Path, run: Path) -> None:
    done = protopfaith(place, "train", "compute.workers=0", "--resume", "--out", "runs/tiny")
    assert done.returncode == 0, done.stderr
    done = protopfaith(place, "train", "optimization.batch_size=3", "--resume", "--out", "runs/tiny")
    fails_with(done, "optimization.batch_size was 12, now 3")
    done = protopfaith(place, "train", "--resume", "--out", "runs/tiny", "--root", "elsewhere")
    fails_with(done, "no folder elsewhere")
