"""Errands: done in pieces, given up when nobody waits, and one sentence when they fail."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.errands import Errand
from protopfaith.serve.worker import Worker


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
        errand = Errand("somebody", pieces(done))
        worker.enter(errand)
        assert errand.result.result(timeout=120) == "done"
    assert done == [0, 1, 2]


def test_what_fails_is_told() -> None:
    with Worker() as worker:
        errand = Errand("somebody", pieces([], fails=True))
        worker.enter(errand)
        with pytest.raises(ProtoPFaithError, match="cannot be done"):
            errand.result.result(timeout=120)


def test_an_errand_that_is_given_up_is_not_done() -> None:
    done: list[int] = []
    errand = Errand("somebody", pieces(done))
    errand.result.cancel()
    assert not errand.wants_to_play
    with Worker() as worker:
        worker.enter(errand)
        worker.ask("somebody", lambda: None).result(timeout=120)
    assert done == []
