"""Background jobs: done in pieces, given up when nobody waits, and one sentence when they fail."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.background_job import BackgroundJob
from protopfaith.serve.worker import Worker
from tests.serve.test_worker import Play, wait_for


def pieces(done: list[int], count: int = 3, fails: bool = False) -> Generator[None, None, str]:
    for number in range(count):
        done.append(number)
        yield
    if fails:
        raise ProtoPFaithError("It cannot be done.")
    return "done"


def test_the_worker_does_one_piece_at_a_time() -> None:
    done: list[int] = []
    with Worker() as worker:
        job = BackgroundJob("somebody", pieces(done))
        worker.enter(job)
        assert job.result.result(timeout=120) == "done"
    assert done == [0, 1, 2]


def test_what_a_visitor_waits_for_goes_before_the_own_map() -> None:
    """Of three visitors, one has a map and asks for two jobs: others keep their turns."""
    played: list[str] = []
    games = [Noted("me", 4, played, "my map"), Noted("me", 2, played, "my other map")]
    others = [Noted("other", 6, played, "other map"), Noted("third", 2, played, "third map")]

    def noting(name: str) -> Generator[None, None, None]:
        for _ in range(2):
            played.append(name)
            yield
        played.append(name)

    worker = Worker()
    for one in (
        *games,
        *others,
        BackgroundJob("me", noting("portrait")),
        last := BackgroundJob("me", noting("save")),
    ):
        worker.enter(one)
    with worker:
        last.result.result(timeout=120)
        wait_for(lambda: not any(game.left for game in (*games, *others)))
    mine = [one for one in played if one in ("portrait", "save") or one.startswith("my")]
    assert mine[:6] == ["portrait", "save"] * 3
    assert sorted(mine[6:]) == ["my map"] * 4 + ["my other map"] * 2
    assert played[:6] == ["portrait", "other map", "third map", "save", "other map", "third map"]


class Noted(Play):
    """A game that notes its own name."""

    def __init__(self, visitor: str, slices: int, played: list[str], name: str):
        super().__init__(visitor, slices, played)
        self.name = name

    def play(self) -> None:
        self.left -= 1
        self.played.append(self.name)


def test_what_fails_is_told() -> None:
    with Worker() as worker:
        job = BackgroundJob("somebody", pieces([], fails=True))
        worker.enter(job)
        with pytest.raises(ProtoPFaithError, match="cannot be done"):
            job.result.result(timeout=120)


def test_an_errand_that_is_given_up_is_not_done() -> None:
    done: list[int] = []
    job = BackgroundJob("somebody", pieces(done))
    job.result.cancel()
    assert not job.wants_to_play
    with Worker() as worker:
        worker.enter(job)
        worker.ask("somebody", lambda: None).result(timeout=120)
    assert done == []
