"""Property tests draw new examples in every run, and in CI always the same ones.

What tests of several folders share is here as well: one Ray, and a network of findings.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.distribution import FilesTogether, check_heavy, put_slow_first

if TYPE_CHECKING:
    from protopfaith.data import ImageData
    from protopfaith.network import XProtoNet

if "PROTOPFAITH_STATE" not in os.environ:  # not the user's own
    _STATE = tempfile.TemporaryDirectory(prefix="protopfaith-state-")  # goes with this process
    os.environ["PROTOPFAITH_STATE"] = _STATE.name

settings.register_profile("local", deadline=None)  # a busy machine is slow, which is no error
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    check_heavy(items)
    put_slow_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesTogether | None:
    return FilesTogether(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def bird_findings() -> ImageData:
    """A few small birds, each with several findings."""
    from protopfaith.data import load_data

    return load_data("birds_multilabel", size=32, train=32, validation=40, test=36)


@pytest.fixture(scope="session")
def finding_network(bird_findings: ImageData) -> XProtoNet:
    """Untrained; tests only read it."""
    import torch

    from protopfaith.network import XProtoNet

    torch.manual_seed(0)
    return XProtoNet("small", list(bird_findings.classes), 4, 8).eval()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Ray on two nodes with a CPU each, whose workers see this source."""
    ray = pytest.importorskip("ray")
    os.environ.setdefault("RAY_worker_niceness", "0")  # else busy machines hardly let them start
    here = Path(__file__).parents[1]
    places = [str(here / "src"), str(here), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    found = _two_nodes()
    ray.init(address=found.address, log_to_driver=False, logging_level="error")
    yield found
    ray.shutdown()
    found.shutdown()


def _two_nodes(tries: int = 4) -> Any:
    """Nodes have half a minute to start, which is too little on a very busy machine: tried again."""
    from ray.cluster_utils import Cluster

    for left in reversed(range(tries)):
        found = Cluster()
        try:
            found.add_node(num_cpus=1, include_dashboard=False)
            found.add_node(num_cpus=1)
        except Exception:
            found.shutdown()  # half a cluster would take its part of the machine until the end
            if not left:
                raise
        else:
            return found
    raise AssertionError
