"""On a real Ray: two nodes, workers that die, tasks that kill. Without torch, so workers are there soon."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protopfaith import cluster as ray_cluster
from protopfaith.cluster import TRIES, Actor, SetAside, check_address, on_ray
from protopfaith.errors import ProtoPFaithError

pytest.importorskip("ray")
pytestmark = pytest.mark.slow  # Ray itself takes some seconds
ONE = {"num_cpus": 1}


class Squares:
    """Dies at some numbers, so many times each; fails at negative ones."""

    def __init__(self, folder: Path, deadly: dict[int, int], seconds: float = 0.0):
        self.folder, self.deadly, self.seconds = folder, deadly, seconds

    def answer(self, number: int) -> int:
        deaths = self.folder / str(number)
        before = len(deaths.read_text()) if deaths.exists() else 0
        if before < self.deadly.get(number, 0):
            deaths.write_text("x" * (before + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        if number < 0:
            raise ValueError("a negative number")
        time.sleep(self.seconds)
        return number * number


class Broken:
    def __init__(self) -> None:
        raise OSError("no such file here")


def answers(cluster: Any, folder: Path, *phases: list[int], **how: Any) -> dict[int, Any]:
    deadly, seconds = how.pop("deadly", {}), how.pop("seconds", 0.0)
    given = on_ray(cluster.address, Squares, (folder, deadly, seconds), *phases, needs=ONE, **how)
    found = list(given)
    assert len(found) == len(dict(found)), "an answer came twice"
    return dict(found)


@pytest.mark.parametrize("ahead", [1, 2])
def test_all_answers_come_once_whoever_dies(cluster: Any, tmp_path: Path, ahead: int) -> None:
    found = answers(cluster, tmp_path, list(range(12)), deadly={3: 1, 4: 2}, ahead=ahead)
    assert found == {number: number * number for number in range(12)}


def test_a_task_that_always_kills_is_set_aside(cluster: Any, tmp_path: Path) -> None:
    found = answers(cluster, tmp_path, list(range(6)), deadly={2: 99})
    aside = found.pop(2)
    assert isinstance(aside, SetAside)
    assert f"{TRIES} times" in aside.why
    assert found == {number: number * number for number in (0, 1, 3, 4, 5)}
    assert len((tmp_path / "2").read_text()) in (TRIES, TRIES + 1)  # at first with others, then alone


def test_a_task_that_fails_does_not_stop_the_others(cluster: Any, tmp_path: Path) -> None:
    found = answers(cluster, tmp_path, [1, -1, 2])
    assert isinstance(found[-1], SetAside)
    assert "a negative number" in found[-1].why
    assert (found[1], found[2]) == (1, 4)


def test_phases_wait_for_each_other(cluster: Any, tmp_path: Path) -> None:
    found = answers(cluster, tmp_path, [1, 2, 3], [4, 5], seconds=0.2)
    assert list(found)[3:] in ([4, 5], [5, 4])


def test_a_lost_node_costs_what_it_was_doing(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=1)
    given = on_ray(cluster.address, Squares, (tmp_path, {}, 0.3), list(range(20)), needs=ONE)
    found = [next(given) for _ in range(4)]
    cluster.remove_node(node, allow_graceful=False)
    found += list(given)
    assert sorted(found) == [(number, number * number) for number in range(20)]


def test_workers_that_cannot_start_are_told(cluster: Any) -> None:
    with pytest.raises(ProtoPFaithError, match="no such file here"):
        list(on_ray(cluster.address, Broken, (), [1], needs=ONE))


def test_a_cluster_without_room_is_told(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="no room"):
        list(on_ray(cluster.address, Squares, (tmp_path, {}), [1], needs={"num_cpus": 1000}))


def test_a_worker_imports_what_the_user_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_extension_of_tests.py").write_text("NAME = 'mine'")
    monkeypatch.setattr(sys, "path", list(sys.path))
    actor = Actor(["my_extension_of_tests"], str(tmp_path), Squares, tmp_path, {})
    assert sys.modules.pop("my_extension_of_tests").NAME == "mine"
    assert (actor.ready(), actor.answer(3)) == (None, 9)


@pytest.mark.parametrize(
    "address", [" ", "", "ftp//x", "nowhere", "ftp://host:1", "host:port", "host:123456"]
)
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(ProtoPFaithError, match="There is no Ray at"):
        check_address(address)


def test_an_address_where_nobody_listens_is_answered_soon() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens: refused
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for spelled in (address, f"ray://{address}", "nowhere.invalid:6379"):
            with pytest.raises(ProtoPFaithError, match="There is no Ray cluster at"):
                ray_cluster._connect(SimpleNamespace(init=pytest.fail), spelled)
            with pytest.raises(ProtoPFaithError, match="There is no Ray cluster at"):
                check_address(spelled)
    with pytest.raises(ProtoPFaithError, match="There is no Ray cluster at"):
        check_address("127.0.0.1:99999")
