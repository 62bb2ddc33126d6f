"""The desk keeps cases within bounds: the one that was looked at least recently goes first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.desk import Desk
from protopfaith.serve.networks import Network
from protopfaith.serve.tidying import give_back
from protopfaith.serve.worker import Worker


@pytest.fixture
def desk(explainer: Explainer) -> Iterator[Desk]:
    with Worker() as worker:
        bounds = Bounds(cases=4, visitor_cases=3, unseen=1000)
        yield Desk([Network(0, explainer, "birds")], worker, bounds)


def opened(desk: Desk, visitor: str, pixels: torch.Tensor) -> Case:
    return desk.open(desk.networks[0], pixels, "a bird", visitor)


def test_a_visitor_has_so_many_cases_and_the_server_too(desk: Desk, pixels: torch.Tensor) -> None:
    mine = [opened(desk, "me", pixels) for _ in range(4)]
    assert desk.find(mine[0].id) is None
    assert desk.cases_of("me") == mine[:0:-1]
    others = [opened(desk, f"visitor {number}", pixels) for number in range(3)]
    assert sum(desk.find(case.id) is not None for case in mine + others) == 4


def test_what_somebody_looks_at_stays(desk: Desk, pixels: torch.Tensor) -> None:
    first = opened(desk, "me", pixels)

    async def look() -> None:
        first.board.join()

    asyncio.run(look())
    for _ in range(5):
        opened(desk, "me", pixels)
    assert desk.find(first.id) is first


def test_a_server_full_of_readers_is_busy(desk: Desk, pixels: torch.Tensor) -> None:
    async def look(case: Case) -> None:
        case.board.join()

    for number in range(8):
        asyncio.run(look(opened(desk, str(number), pixels)))
    with pytest.raises(ProtoPFaithError, match="busy"):
        opened(desk, "one more", pixels)


def test_what_nobody_looked_at_for_long_is_forgotten(desk: Desk, pixels: torch.Tensor) -> None:
    old = opened(desk, "me", pixels)
    old.seen = time.monotonic() - 2000
    desk.sweep()
    assert desk.find(old.id) is None


def test_memory_of_what_was_forgotten_is_given_back_once(desk: Desk, pixels: torch.Tensor) -> None:
    jobs: list[object] = []
    desk.worker.when_idle = jobs.append  # type: ignore[method-assign]
    for _ in range(5):  # more than a visitor's, so that some are forgotten on the way
        opened(desk, "me", pixels)
    assert not jobs
    desk.sweep()
    desk.sweep()
    assert jobs == [give_back]


def test_networks_are_found_by_number_alone(desk: Desk) -> None:
    assert desk.network("0") is desk.networks[0]
    for bad in ("1", "-1", "x", None, "../0", 10**9, ""):
        with pytest.raises(ProtoPFaithError):
            desk.network(bad)


def test_pages_are_told_what_became_of_their_run(desk: Desk, pixels: torch.Tensor) -> None:
    run = desk.networks[0].explainer.run
    assert run is not None
    case = opened(desk, "me", pixels)
    desk.decide(case).result()

    def answer() -> str:
        desk.soon(case, lambda: None).result()  # after all that waits
        return case.board.since(0)[1]["answer"]

    desk.sweep()
    assert "no longer where it was" not in answer()
    aside = run.model_path.rename(run.model_path.with_suffix(".aside"))
    try:
        desk.sweep()
        assert "no longer where it was" in answer()
    finally:
        aside.rename(run.model_path)
    desk.sweep()
    assert "no longer where it was" not in answer()
