from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Catalog, Explainer, explain_prototypes, explain_sources
from protopfaith.training import Run

QUICK: dict[str, Any] = {"players": 24, "budget": 96}


@pytest.fixture
def copy(run: Run, tmp_path: Path) -> Run:
    """The run, with nothing in its cache."""
    shutil.copytree(run.folder, tmp_path / "run", ignore=shutil.ignore_patterns("explanations"))
    return Run(tmp_path / "run")


@pytest.fixture(scope="module")
def serial(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("serial") / "run"
    shutil.copytree(run.folder, folder, ignore=shutil.ignore_patterns("explanations"))
    return explain_prototypes(folder, nearest=1, **QUICK)


def same(first: Catalog, second: Catalog) -> None:
    """Equal bit by bit."""
    for one, two in zip(first.prototypes, second.prototypes, strict=True):
        assert torch.equal(one.source_side.regions.values, two.source_side.regions.values)
        assert torch.equal(one.source_side.regions.standard_errors, two.source_side.regions.standard_errors)
    assert first.to_dict() == second.to_dict()


def test_shards_fill_the_cache_of_the_run(copy: Run, serial: Catalog) -> None:
    count = len(serial.prototypes)
    assert explain_sources(copy, shard=(2, 2), **QUICK) == list(range(0, count, 2))
    assert explain_sources(copy, shard=(1, 2), **QUICK) == []
    explainer = Explainer(copy)
    same(serial, explain_prototypes(explainer, nearest=1, **QUICK))
    assert explainer.sources.evaluations == 0


def test_a_network_alone_has_no_cache_to_share(run: Run) -> None:
    alone = Explainer(run.model(), preprocessing=run.preprocessing(), images=run.data())
    with pytest.raises(ProtoPFaithError, match="give a run"):
        explain_sources(alone, **QUICK)


@pytest.mark.slow
def test_workers_of_ray_give_what_a_serial_run_gives(cluster: Any, copy: Run, serial: Catalog) -> None:
    told: list[tuple[str, int, int]] = []
    found = explain_prototypes(
        copy, nearest=1, ray=cluster.address, progress=lambda *one: told.append(one), **QUICK
    )
    same(serial, found)
    assert told[0] == ("prototypes", 0, len(serial.prototypes))
