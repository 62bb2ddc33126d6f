from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from safetensors import safe_open

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import train
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


def test_resume_with_a_folder_for_a_checkpoint_is_told_before_torch_is_loaded(
    run: Path, tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "last.safetensors").unlink()
    (tmp_path / "run" / "last.safetensors").mkdir()
    done = protopfaith(tmp_path, "train", "--resume", "--out", "run")
    fails_with(done, "last.safetensors is a folder, where a file is expected")
    assert "Loading torch" not in done.stderr
    with pytest.raises(ProtoPFaithError, match="is a folder"):
        train(None, tmp_path / "run", resume=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("birds", "--folds", "0", "data.fold=1"), "given twice, by --folds and by data.fold"),
        (("birds", "--grid", "cub"), "A grid names its recipe itself, so 'birds' beside it"),
    ],
)
def test_what_is_said_twice_is_told(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    fails_with(protopfaith(tmp_path, "train", *arguments, "--out", "run"), words)
    assert not (tmp_path / "run").exists()
