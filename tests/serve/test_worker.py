"""Visitors take turns, questions go before games, and nothing that fails stops the worker."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.worker import Worker


class Play:
    """A game of so many slices that notes who played."""

    is_awaited = False

    def __init__(self, visitor: str, slices: int, played: list[str], broken: bool = False):
        self.visitor, self.left, self.played, self.broken = visitor, slices, played, broken
        self.before: list[int] = []
        self.message = ""

    @property
    def wants_to_play(self) -> bool:
        return self.left > 0

    def play(self) -> None:
        self.left -= 1
        if self.broken:
            raise ProtoPFaithError("It is broken.")
        self.played.append(self.visitor)

    def fail(self, message: str) -> None:
        self.message, self.left = message, 0

    def told(self, before: int) -> None:
        self.before.append(before)


def wait_for(done: object, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_visitors_take_turns_whatever_they_have_open() -> None:
    played: list[str] = []
    games = [Play("many", 20, played) for _ in range(5)] + [Play("one", 20, played)]
    worker = Worker()
    for game in games:
        worker.enter(game)
    with worker:
        wait_for(lambda: games[-1].left == 0)
    assert abs(played[:38].count("many") - played[:38].count("one")) <= 2


def test_places_in_the_queue_are_told() -> None:
    games = [Play(str(number), 3, []) for number in range(4)]
    worker = Worker()
    for game in games:
        worker.enter(game)
    with worker:
        wait_for(lambda: not any(game.left for game in games))
    assert games[0].before[0] == 0
    assert games[3].before[0] == 3
    assert 0 in games[3].before


def test_a_short_question_does_not_wait_for_a_long_game() -> None:
    played: list[str] = []
    game = Play("long", 10**9, played)
    with Worker() as worker:
        worker.enter(game)
        assert worker.ask("short", lambda: 7).result(timeout=120) == 7
        game.left = 0


def test_what_fails_is_told_and_the_rest_goes_on() -> None:
    played: list[str] = []
    broken, good = Play("a", 3, played, broken=True), Play("b", 3, played)
    with Worker() as worker:
        with pytest.raises(ZeroDivisionError):
            worker.ask("a", lambda: 1 / 0).result(timeout=120)
        worker.enter(broken)
        worker.enter(good)
        wait_for(lambda: good.left == 0 and broken.left == 0)
        assert worker.ask("a", lambda: 1).result(timeout=120) == 1
    assert broken.message == "It is broken."


def test_a_game_that_cannot_even_fail_stops_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the traceback goes
    played: list[str] = []
    broken, good = Play("a", 1, played, broken=True), Play("b", 3, played)
    monkeypatch.setattr(broken, "fail", lambda message: 1 / 0)
    with Worker() as worker:
        worker.enter(broken)
        worker.enter(good)
        wait_for(lambda: good.left == 0)
    assert played == ["b", "b", "b"]


def test_one_visitor_cannot_fill_the_queue() -> None:
    worker, begin = Worker(waiting=3), threading.Event()
    for _ in range(3):
        worker.ask("greedy", begin.wait)
    with pytest.raises(ProtoPFaithError, match="Too many"):
        worker.ask("greedy", begin.wait)
    answer = worker.ask("modest", lambda: 1)
    begin.set()
    with worker:
        assert answer.result(timeout=120) == 1


def test_idle_work_is_done_in_parts_and_ends() -> None:
    parts: list[int] = []

    def part() -> bool:
        parts.append(1)
        return len(parts) < 5

    with Worker() as worker:
        worker.when_idle(part)
        wait_for(lambda: len(parts) == 5)
        time.sleep(0.05)
    assert len(parts) == 5
