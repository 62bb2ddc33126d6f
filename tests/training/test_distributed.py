from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest
import yaml
from safetensors.torch import load_file

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import distributed, load_recipe, train_folds, train_grid
from protopfaith.training.metrics import EpochMetrics, MetricsFile
from protopfaith.training.recipe import Recipe, recipe_from_dict
from tests.training.test_search import SMALL

FOLDS = (0, 1)


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return recipe_from_dict(SMALL)


@pytest.fixture(scope="module")
def serial(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serial") / "folds"
    train_folds(recipe, folder, FOLDS, progress=False)
    return folder


def same(first: Path, second: Path) -> None:
    """Equal bit by bit."""
    tables = [pd.read_csv(folder / "folds.csv") for folder in (first, second)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    for fold in FOLDS:
        one, two = (load_file(folder / f"fold_{fold}" / "model.safetensors") for folder in (first, second))
        assert all(one[name].equal(two[name]) for name in one)


def test_shards_of_folds_become_one_table(recipe: Recipe, serial: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folds"
    assert train_folds(recipe, folder, FOLDS, shard=(2, 2), progress=False).empty
    assert not (folder / "folds.csv").exists()
    assert len(train_folds(recipe, folder, FOLDS, shard=(1, 2), progress=False)) == 4
    same(serial, folder)
    with pytest.raises(ProtoPFaithError, match="is there already"):
        train_folds(recipe, folder, FOLDS, shard=(1, 2), progress=False)
    assert len(train_folds(recipe, folder, FOLDS, shard=(1, 2), resume=True, progress=False)) == 4


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, and beside the file what two shards made of them, one table each."""
    folder = tmp_path_factory.mktemp("grid")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(SMALL))
    search = {"recipe": str(folder / "recipe.yaml"), "search": {"model.prototypes_per_class": [1, 2]}}
    (folder / "grid.yaml").write_text(yaml.safe_dump(search))
    for number in (1, 2):
        table = train_grid(folder / "grid.yaml", folder / "runs", shard=(number, 2), progress=False)
        table.to_csv(folder / f"{number}.csv", index=False)
    return folder / "grid.yaml"


def test_shards_of_a_grid_become_one_table(grid: Path) -> None:
    assert not (grid.parent / "1.csv").read_text().strip()
    assert sorted(pd.read_csv(grid.parent / "2.csv", dtype={"run": str})["run"]) == ["000", "001"]


def test_several_devices_for_a_run_and_ray_do_not_go_together(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    several = load_recipe("birds", ["compute.accelerator=cpu", "compute.devices=2"])
    with pytest.raises(ProtoPFaithError, match="one device"):
        train_folds(several, tmp_path / "folds", FOLDS, ray="local", progress=False)
    assert not (tmp_path / "folds").exists()


class Mortal(distributed.TrainingWorker):
    """Dies once in the middle of each run: when the second epoch has its row."""

    def answer(self, folder: Path, recipe: Recipe) -> str | None:
        died, append = folder.with_name(f"{folder.name}-died"), MetricsFile.append

        def append_and_die(file: MetricsFile, metrics: EpochMetrics) -> None:
            append(file, metrics)
            if metrics.stage == "warmup" and not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        with mock.patch.object(MetricsFile, "append", append_and_die):
            return super().answer(folder, recipe)


@pytest.mark.slow
def test_workers_of_ray_train_what_a_serial_run_trains_whoever_dies(
    cluster: Any, recipe: Recipe, serial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "TrainingWorker", Mortal)
    folder = tmp_path / "folds"
    train_folds(recipe, folder, FOLDS, ray=cluster.address, progress=False)
    same(serial, folder)
    assert all((folder / f"fold_{fold}-died").exists() for fold in FOLDS)


@pytest.mark.slow
def test_a_worker_of_ray_trains_the_run_that_a_grid_lacks(cluster: Any, grid: Path, tmp_path: Path) -> None:
    expected, folder = grid.parent / "runs", tmp_path / "runs"
    shutil.copytree(expected, folder, ignore=shutil.ignore_patterns("001", "*.csv"))
    table = train_grid(grid, folder, ray=cluster.address, resume=True, progress=False)
    assert sorted(table["run"]) == ["000", "001"]
    one, two = (load_file(place / "001" / "model.safetensors") for place in (expected, folder))
    assert all(one[name].equal(two[name]) for name in one)
