from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from protopfaith.evaluation import Faithfulness, distributed, faithfulness, measure_share
from protopfaith.training import Run

SMALL: dict[str, Any] = {
    "explainers": ["owen", "saliency", "random"],
    "prototypes": 2,
    "steps": 10,
    "players": 8,
    "budget": 128,
    "truth_budget": 256,
    "checked": 1,
    "progress": False,
}


@pytest.fixture(scope="module")
def serial(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Faithfulness:
    return faithfulness(run, tmp_path_factory.mktemp("serial"), **SMALL)


def same(first: Faithfulness, second: Faithfulness) -> None:
    """Equal bit by bit, but for the time."""
    frames = [one.frame().drop(columns="seconds") for one in (first, second)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    tables = [one.prototypes_frame().drop(columns="seconds") for one in (first, second)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_shards_measure_into_one_folder(run: Run, serial: Faithfulness, tmp_path: Path) -> None:
    left = [measure_share(run, tmp_path, shard=(number, 3), **SMALL) for number in (3, 1, 2)]
    assert left[0] > left[1] > left[2] == 0
    begun: list[str] = []
    found = faithfulness(run, tmp_path, **{**SMALL, "progress": begun.append})
    same(serial, found)
    assert measure_share(run, tmp_path, shard=(1, 1), **SMALL) == 0


def test_an_explainer_that_cannot_work_is_left_out_as_ever(run: Run, tmp_path: Path) -> None:
    """Also where another shard met it."""
    asked = {**SMALL, "explainers": ["random", "owen"], "truth_budget": 0}
    assert measure_share(run, tmp_path, **asked) == 0
    assert [result.name for result in faithfulness(run, tmp_path, **asked).results] == ["random", "owen"]


@pytest.mark.slow
def test_workers_of_ray_give_what_a_serial_run_gives(
    cluster: Any, run: Run, serial: Faithfulness, tmp_path: Path
) -> None:
    same(serial, faithfulness(run, tmp_path, ray=cluster.address, **SMALL))


@pytest.mark.slow
def test_an_explainer_that_kills_its_workers_is_set_aside(
    cluster: Any, run: Run, serial: Faithfulness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(self: Any, name: str, what: str, place: int) -> str | None:
        if (name, what) == ("saliency", distributed.MAPS):
            os.kill(os.getpid(), signal.SIGKILL)
        return distributed.BenchWorker.answer(self, name, what, place)

    worker = type("BenchWorker", (distributed.BenchWorker,), {"answer": answer})
    monkeypatch.setattr(distributed, "BenchWorker", worker)
    asked = {**SMALL, "explainers": ["saliency", "random"], "prototypes": 1, "truth_budget": 0}
    found = faithfulness(run, tmp_path, ray=cluster.address, **asked)
    assert "killed its worker 3 times" in found.skipped["saliency"]
    assert [result.name for result in found.results] == ["random"]
