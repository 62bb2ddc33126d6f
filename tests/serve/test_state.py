"""The state keeps cases within bounds: the one that was looked at least recently goes first."""

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
from protopfaith.serve.cleanup import give_back
from protopfaith.serve.networks import Network
from protopfaith.serve.state import ServerState
from protopfaith.serve.worker import Worker


@pytest.fixture
def state(explainer: Explainer) -> Iterator[ServerState]:
    with Worker() as worker:
        bounds = Bounds(cases=4, visitor_cases=3, unseen=1000)
        yield ServerState([Network(0, explainer, "birds")], worker, bounds)


def opened(state: ServerState, visitor: str, pixels: torch.Tensor) -> Case:
    return state.open(state.networks[0], pixels, "a bird", visitor)


def test_a_visitor_has_so_many_cases_and_the_server_too(state: ServerState, pixels: torch.Tensor) -> None:
    mine = [opened(state, "me", pixels) for _ in range(4)]
    assert state.find(mine[0].id) is None
    assert state.cases_of("me") == mine[:0:-1]
    others = [opened(state, f"visitor {number}", pixels) for number in range(3)]
    assert sum(state.find(case.id) is not None for case in mine + others) == 4


def test_what_somebody_looks_at_stays(state: ServerState, pixels: torch.Tensor) -> None:
    first = opened(state, "me", pixels)

    async def look() -> None:
        first.live.join()

    asyncio.run(look())
    for _ in range(5):
        opened(state, "me", pixels)
    assert state.find(first.id) is first


def test_a_server_full_of_readers_is_busy(state: ServerState, pixels: torch.Tensor) -> None:
    async def look(case: Case) -> None:
        case.live.join()

    for number in range(8):
        asyncio.run(look(opened(state, str(number), pixels)))
    with pytest.raises(ProtoPFaithError, match="busy"):
        opened(state, "one more", pixels)


def test_what_nobody_looked_at_for_long_is_forgotten(state: ServerState, pixels: torch.Tensor) -> None:
    old = opened(state, "me", pixels)
    old.seen = time.monotonic() - 2000
    state.sweep()
    assert state.find(old.id) is None


def test_memory_of_what_was_forgotten_is_given_back_once(state: ServerState, pixels: torch.Tensor) -> None:
    jobs: list[object] = []
    state.worker.when_idle = jobs.append  # type: ignore[method-assign]
    for _ in range(5):  # more than a visitor's, so that some are forgotten on the way
        opened(state, "me", pixels)
    assert not jobs
    state.sweep()
    state.sweep()
    assert jobs == [give_back]


def test_networks_are_found_by_number_alone(state: ServerState) -> None:
    assert state.network("0") is state.networks[0]
    for bad in ("1", "-1", "x", None, "../0", 10**9, ""):
        with pytest.raises(ProtoPFaithError):
            state.network(bad)


def test_pages_are_told_what_became_of_their_run(state: ServerState, pixels: torch.Tensor) -> None:
    run = state.networks[0].explainer.run
    assert run is not None
    case = opened(state, "me", pixels)
    state.decide(case).result()

    def answer() -> str:
        state.soon(case, lambda: None).result()  # after all that waits
        return case.live.since(0)[1]["answer"]

    state.sweep()
    assert "no longer where it was" not in answer()
    aside = run.model_path.rename(run.model_path.with_suffix(".aside"))
    try:
        state.sweep()
        assert "no longer where it was" in answer()
    finally:
        aside.rename(run.model_path)
    state.sweep()
    assert "no longer where it was" not in answer()
