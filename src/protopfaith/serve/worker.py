"""One worker for everybody: games a slice at a time, visitor after visitor; short questions beside them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from protopfaith.crashes import unexpected
from protopfaith.errors import ProtoPFaithError

logger = logging.getLogger("protopfaith")


class Playable(Protocol):
    """A case whose game goes on."""

    visitor: str
    is_awaited: bool  # somebody waits for its end: among a visitor's own it goes first

    @property
    def wants_to_play(self) -> bool:
        """Whether somebody looks at it and it is not done."""

    def play(self) -> None:
        """One slice of its game."""

    def fail(self, message: str) -> None:
        """Its game cannot go on."""

    def told(self, before: int) -> None:
        """How many visitors come before it."""


class Worker:
    """Takes visitors in turn, in two threads: one answers short questions, so that nobody waits for a slice
    to end; the other plays games, one slice of one game of a visitor, then it is the next visitor's turn. Of
    one visitor's own, what is waited for goes before a map that only becomes sharper.

    Args:
        waiting: short questions that one visitor may have open.
        prepare: what the threads do first.

    >>> with Worker() as worker:
    ...     worker.ask("somebody", lambda: 6 * 7).result()
    42
    """

    def __init__(self, waiting: int = 8, prepare: Callable[[], None] | None = None) -> None:
        self.waiting, self._prepare = waiting, prepare
        self._asked: dict[str, deque[tuple[Callable[[], Any], Future[Any]]]] = {}
        self._games: dict[str, deque[Playable]] = {}
        self._order: deque[str] = deque()  # visitors whose games go on, the next one first
        self._idle: list[Callable[[], bool]] = []  # work for nobody, which says whether there is more
        self._awake = threading.Condition()
        self._ended = False
        self._threads = [
            threading.Thread(target=self._work, args=[find], name=name, daemon=True)
            for name, find in (("questions", self._next_question), ("games", self._next_game))
        ]

    def __enter__(self) -> Worker:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._awake:
            self._ended = True
            self._awake.notify_all()
        for thread in self._threads:
            thread.join(timeout=30)

    def ask(self, visitor: str, job: Callable[[], Any]) -> Future[Any]:
        """A short question; raises if the visitor has many open ones."""
        future: Future[Any] = Future()
        with self._awake:
            mine = self._asked.setdefault(visitor, deque())
            if len(mine) >= self.waiting:
                raise ProtoPFaithError("Too many questions at once; wait for the answers to the first ones.")
            mine.append((job, future))
            self._awake.notify_all()
        return future

    def enter(self, case: Playable) -> None:
        """A case whose game is to go on."""
        with self._awake:
            mine = self._games.setdefault(case.visitor, deque())
            if case not in mine:
                mine.append(case)
            if case.visitor not in self._order:
                self._order.append(case.visitor)
            self._awake.notify_all()

    def when_idle(self, job: Callable[[], bool]) -> None:
        """Work that is done in parts while nobody asks anything, until it returns False."""
        with self._awake:
            self._idle.append(job)
            self._awake.notify_all()

    @property
    def playing(self) -> int:
        """Visitors whose games go on."""
        with self._awake:
            return len(self._order)

    def _work(self, find: Callable[[], Callable[[], None] | None]) -> None:
        if self._prepare is not None:
            self._prepare()
        while True:
            with self._awake:
                task = find()
                while task is None and not self._ended:
                    self._awake.wait()
                    task = find()
                if self._ended:
                    return
            assert task is not None
            try:
                task()
            except Exception as error:  # the others' turns still come
                logger.warning("%s", unexpected(error))

    def _next_question(self) -> Callable[[], None] | None:
        """The next short question, of all visitors in turn."""
        for visitor in list(self._asked):
            waiting = self._asked.pop(visitor)
            if waiting:
                job, future = waiting.popleft()
                if waiting:
                    self._asked[visitor] = waiting  # again, behind all others
                return lambda: _answer(job, future)
        return None

    def _next_game(self) -> Callable[[], None] | None:
        """A slice of the next visitor's next game; where nobody plays, of the rest."""
        while self._order:
            visitor = self._order.popleft()
            games = self._games.get(visitor, deque())
            while games and not games[0].wants_to_play:
                games.popleft()
            if not games:
                self._games.pop(visitor, None)
                continue
            case = next((one for one in games if one.is_awaited and one.wants_to_play), games[0])
            games.remove(case)
            games.append(case)
            self._order.append(visitor)
            self._tell_places()
            return lambda: _play(case)
        return self._idle_part if self._idle else None

    def _tell_places(self) -> None:
        """Everybody's place in the round that begins; the visitor whose turn it is stands at its end."""
        order = [self._order[-1], *list(self._order)[:-1]]
        for before, visitor in enumerate(order):
            for case in self._games.get(visitor, ()):
                case.told(before)

    def _idle_part(self) -> None:
        with self._awake:
            job = self._idle[0]
        try:
            more = job()
        except Exception as error:  # nobody waits for it
            logger.warning("%s", error if isinstance(error, ProtoPFaithError) else unexpected(error))
            more = False
        if not more:
            with self._awake:
                self._idle.remove(job)


def _answer(job: Callable[[], Any], future: Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(job())
    except BaseException as error:  # the one who asked is told
        future.set_exception(error)


def _play(case: Playable) -> None:
    try:
        case.play()
    except ProtoPFaithError as error:
        case.fail(str(error))
    except Exception as error:  # one case does not spoil the others
        case.fail(unexpected(error))
