"""On a real Ray: two nodes, workers that die. What else can happen there is tested in `test_cluster.py`."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from protopfaith.cluster import TRIES
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, explain_bulk
from protopfaith.explanation.bulk import on_ray
from protopfaith.explanation.bulk.inputs import Item, list_items
from protopfaith.training import Run
from tests.explanation.bulk.conftest import QUICK, rows, same

pytest.importorskip("ray")
pytestmark = pytest.mark.slow  # every worker imports torch


class Mortal(on_ray.RayWorker):
    """Dies on one image, so many times."""

    deadly, deaths, times = "2.png", "", 0

    def answer(self, position: int, item: Item, contents: on_ray.Contents) -> dict[str, Any]:
        path = Path(self.deaths)
        if item.name == self.deadly and len(path.read_text()) < self.times:
            with path.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(position, item, contents)


def mortal(folder: Path, times: int) -> tuple[type, Path]:
    deaths = folder / "deaths"
    deaths.touch()
    return type("RayWorker", (Mortal,), {"deaths": str(deaths), "times": times}), deaths


def test_rows_are_those_of_a_serial_run_whoever_dies(  # noqa: PLR0917
    cluster: Any, bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, deaths = mortal(tmp_path, times=1)
    monkeypatch.setattr(on_ray, "RayWorker", worker)
    found = explain_bulk(run, [pictures], tmp_path / "out", ray=cluster.address, at_once=2, **QUICK)
    assert deaths.read_text() == "x"
    same(bulk, found)


def test_an_image_that_always_kills_is_set_aside(  # noqa: PLR0917
    cluster: Any, bulk: Bulk, run: Run, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With files that are sent along, so that this is tried as well."""
    worker, deaths = mortal(tmp_path, times=99)
    monkeypatch.setattr(on_ray, "RayWorker", worker)
    found = explain_bulk(run, [pictures], tmp_path / "out", ray=cluster.address, ship=True, **QUICK)
    assert len(deaths.read_text()) in (TRIES, TRIES + 1)  # at first with others, then alone
    there, expected = rows(found), rows(bulk)
    assert "killed its worker 3 times" in there.pop("2.png")["error"]
    del expected["2.png"]
    for one in (*there.values(), *expected.values()):
        del one["seconds"]
    assert there == expected


def test_images_go_alone_until_one_succeeds() -> None:
    held = []

    class Answering:
        settle = staticmethod(lambda: None)

        def __call__(self, position: int, item: Item) -> dict[str, Any]:
            held.append(worker.alone.locked())
            return {"error": "broken" if position < 2 else None}

    worker = object.__new__(on_ray.RayWorker)
    worker.answering = Answering()  # type: ignore[assignment]
    worker.alone, worker.prepared, worker.thread = threading.Lock(), False, threading.local()
    for position in range(5):
        worker.answer(position, Item("x.png", "x.png"), ())
    assert held == [True, True, True, False, False]


def test_masks_are_sent_along(tmp_path: Path) -> None:
    for name in ("a.png", "first.png", "second.tif"):
        (tmp_path / name).write_bytes(name.encode())
    listed = tmp_path / "list.csv"
    listed.write_text("file,mask\na.png,first.png\na.png,second.tif\na.png,missing.png\n")
    (item,) = list_items([listed])
    contents = on_ray._contents(item)
    assert contents == (b"a.png", b"first.png", b"second.tif", None)
    for name in ("a.png", "first.png", "second.tif"):
        (tmp_path / name).unlink()
    (tmp_path / "there").mkdir()
    there = on_ray._copied(item, contents, tmp_path / "there")
    assert there.content() == b"a.png"
    assert [Path(mask).read_bytes() for mask in there.masks[:2]] == [b"first.png", b"second.tif"]
    assert there.masks[1].endswith(".tif")
    assert there.masks[2] == str(tmp_path / "missing.png")  # the worker says that it is not there


def test_a_network_alone_cannot_be_loaded_elsewhere(run: Run, pictures: Path, tmp_path: Path) -> None:
    from protopfaith.explanation import Explainer

    alone = Explainer(run.model(), preprocessing=run.preprocessing())
    with pytest.raises(ProtoPFaithError, match="give a run"):
        explain_bulk(alone, [pictures], tmp_path / "out", ray="local", **QUICK)
