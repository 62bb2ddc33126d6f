"""Property tests draw new examples at every desk, and in CI always the same ones. One Ray for all tests."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

os.environ.setdefault(
    "PROTOPFAITH_STATE", tempfile.mkdtemp(prefix="protopfaith-state-")
)  # not the user's own

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Ray on two nodes with a CPU each, whose workers see this source."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")  # machines of tests are busy
    here = Path(__file__).parents[1]
    places = [str(here / "src"), str(here), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(places)
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found.add_node(num_cpus=1)
    ray.init(address=found.address, log_to_driver=False, logging_level="error")
    yield found
    ray.shutdown()
    found.shutdown()
