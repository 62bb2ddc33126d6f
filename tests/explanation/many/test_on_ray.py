"""On a real Ray: two CPUs, two nodes, workers that die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, explain_bulk
from protopfaith.explanation.many import on_ray
from protopfaith.explanation.many.inputs import Item
from protopfaith.training import Run
from tests.explanation.many.conftest import QUICK, rows, same

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow  # every worker imports torch
SOURCE = str(Path(on_ray.__file__).parents[3])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with a CPU each; their workers see this source."""
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = os.pathsep.join(
        [SOURCE, str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    )
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found.add_node(num_cpus=1)
    ray.init(address=found.address, log_to_driver=False, logging_level="error")
    yield found
    ray.shutdown()
    found.shutdown()


class Mortal(on_ray.RayWorker):
    """Dies on one image, so many times."""

    deadly, deaths, times = "2.png", "", 0

    def answer(self, position: int, item: Item, content: bytes | None) -> dict[str, Any]:
        path = Path(self.deaths)
        if item.name == self.deadly and len(path.read_text()) < self.times:
            with path.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(position, item, content)


def mortal(folder: Path, times: int) -> tuple[type, Path]:
    deaths = folder / "deaths"
    deaths.touch()
    return type("RayWorker", (Mortal,), {"deaths": str(deaths), "times": times}), deaths


def test_rows_are_those_of_a_serial_run_whoever_dies(  # noqa: PLR0917
    cluster: Any, bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, deaths = mortal(tmp_path, times=1)
    monkeypatch.setattr(on_ray, "RayWorker", worker)
    found = explain_bulk(run, [pictures], tmp_path / "out", ray=cluster.address, **QUICK)
    assert deaths.read_text() == "x"
    same(bulk, found)


def test_an_image_that_always_kills_is_set_aside(  # noqa: PLR0917
    cluster: Any, bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With files that are sent along, so that this is tried as well."""
    worker, deaths = mortal(tmp_path, times=99)
    monkeypatch.setattr(on_ray, "RayWorker", worker)
    found = explain_bulk(run, [pictures], tmp_path / "out", ray=cluster.address, ship=True, **QUICK)
    assert len(deaths.read_text()) in (on_ray.TRIES, on_ray.TRIES + 1)  # at first with others, then alone
    there, expected = rows(found), rows(bulk)
    assert "killed its worker 3 times" in there.pop("2.png")["error"]
    del expected["2.png"]
    for one in (*there.values(), *expected.values()):
        del one["seconds"]
    assert there == expected


def test_a_lost_node_costs_what_it_was_doing(  # noqa: PLR0917
    cluster: Any, bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = cluster.add_node(num_cpus=1)
    real = on_ray._Crew._give
    given = []

    def give(self: Any) -> None:
        given.append(self)
        if len(given) == 4:
            cluster.remove_node(node, allow_graceful=False)
        real(self)

    monkeypatch.setattr(on_ray._Crew, "_give", give)
    same(bulk, explain_bulk(run, [pictures], tmp_path / "out", ray=cluster.address, **QUICK))


def test_workers_that_cannot_load_the_run_are_told(
    cluster: Any, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, *_: object) -> None:
        raise OSError("no such file here")

    monkeypatch.setattr(on_ray, "RayWorker", type("RayWorker", (Mortal,), {"__init__": broken}))
    with pytest.raises(ProtoPFaithError, match="cannot load the run"):
        explain_bulk(run, [pictures], tmp_path / "out", ray=cluster.address, **QUICK)


def test_a_network_alone_cannot_be_loaded_elsewhere(run: Run, pictures: Path, tmp_path: Path) -> None:
    from protopfaith.explanation import Explainer

    alone = Explainer(run.model(), preprocessing=run.preprocessing())
    with pytest.raises(ProtoPFaithError, match="give a run"):
        explain_bulk(alone, [pictures], tmp_path / "out", ray="local", **QUICK)
