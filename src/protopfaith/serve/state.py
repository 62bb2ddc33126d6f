"""What all requests share: the networks, the worker, and the cases, which are opened and forgotten here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from PIL import Image
from torch import Tensor

from protopfaith.crashes import unexpected
from protopfaith.data import Record
from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.cleanup import give_back
from protopfaith.serve.networks import Network
from protopfaith.serve.question import Question, is_short_number
from protopfaith.serve.views import blocks_of, progress_block
from protopfaith.serve.worker import Worker

T = TypeVar("T")


class ServerState:
    """The networks of a server, its worker, and its visitors' cases.

    Args:
        networks: the runs that answer.
        worker: who plays the games.
        bounds: limits.
    """

    def __init__(self, networks: Sequence[Network], worker: Worker, bounds: Bounds | None = None):
        self.networks, self.worker = tuple(networks), worker
        self.bounds = bounds or Bounds()
        self._cases: dict[str, Case] = {}
        self._lock = threading.Lock()
        self._has_forgotten = False  # since memory was last given back
        self._news = [network.news for network in self.networks]  # that pages were told

    def network(self, number: Any) -> Network:
        """The run of that number."""
        text = str(number)
        if not (is_short_number(text) and int(text) < len(self.networks)):
            raise ProtoPFaithError("There is no such network on this server.")
        return self.networks[int(text)]

    def open(
        self,
        network: Network,
        image: Image.Image | Tensor,
        name: str,
        visitor: str,
        *,
        question: Question | None = None,
        known: Record | None = None,
    ) -> Case:
        """A new case; it is decided when the worker comes to it."""
        picture = network.explainer.open(image, name)
        case = Case(network, picture, question or Question(), visitor, bounds=self.bounds, known=known)
        case.on_answer, case.on_state = write_answer, write_state
        case.is_alone = lambda: self.worker.playing <= 1
        self._keep(case)
        return case

    def decide(self, case: Case) -> Future[None]:
        """Asks the network; the case's blocks tell the answer."""
        return self.worker.ask(case.visitor, lambda: _decide(case))

    def soon(self, case: Case, job: Callable[[], T]) -> Future[T]:
        """A short question about a case."""
        return self.worker.ask(case.visitor, job)

    def find(self, name: str) -> Case | None:
        """The case of that name, if it is still kept."""
        with self._lock:
            case = self._cases.get(name)
        if case is not None:
            case.seen = time.monotonic()
        return case

    def same(self, case: Case, question: Question, visitor: str) -> Case | None:
        """A visitor's case with the same image and that question, if there is one."""
        for one in self.cases_of(visitor):
            alike = one.question == question and one.network is case.network
            if alike and one.picture.original is case.picture.original:
                return one
        return None

    def cases_of(self, visitor: str) -> list[Case]:
        """A visitor's cases, the newest first."""
        with self._lock:
            return [case for case in reversed(self._cases.values()) if case.visitor == visitor]

    def _keep(self, case: Case) -> None:
        """Keeps a case, and forgets others where there are too many: nobody's that is looked at now."""
        with self._lock:
            self._forget_old()
            self._cases[case.id] = case
            mine = [one for one in self._cases.values() if one.visitor == case.visitor]
            self._forget(mine, len(mine) - self.bounds.visitor_cases, case)
            everybody = list(self._cases.values())
            self._forget(everybody, len(everybody) - self.bounds.cases, case)
            if len(self._cases) > 2 * self.bounds.cases:
                del self._cases[case.id]
                raise ProtoPFaithError("The server is busy with too many cases; try again later.")

    def sweep(self) -> None:
        """Forgets what nobody has looked at for long, and gives back the memory of all that was forgotten
        since the last time: not at once, as the next case would take it again. Pages are told what became of
        their runs."""
        with self._lock:
            self._forget_old()
            forgotten, self._has_forgotten = self._has_forgotten, False
        if forgotten:
            self.worker.when_idle(give_back)
        self._tell_news()

    def _tell_news(self) -> None:
        before, self._news = self._news, [network.news for network in self.networks]
        with self._lock:
            decided = [case for case in self._cases.values() if case.decision is not None]
        for case in decided:
            if self._news[case.network.number] != before[case.network.number]:
                self.soon(case, partial(write_answer, case))

    def _forget_old(self) -> None:
        before = time.monotonic() - self.bounds.unseen
        old = [one for one in self._cases.values() if one.seen < before]
        self._forget(old, len(old))

    def _forget(self, cases: list[Case], count: int, new: Case | None = None) -> None:
        unseen = sorted((one for one in cases if not one.live.readers and one is not new), key=_seen)
        for one in unseen[: max(0, count)]:
            one.stop()
            del self._cases[one.id]
            self._has_forgotten = True


def write_answer(case: Case) -> None:
    """Writes what is known of a case onto its blocks."""
    case.live.write(blocks_of(case))


def write_state(case: Case) -> None:
    """Writes how far it is, and whether it plays, waits or is stopped; quick, since anybody may call it.

    One at a time: who was slow would else write over what is newer.
    """
    with case.writing:
        case.live.write({"progress": progress_block(case)})


def _decide(case: Case) -> None:
    try:
        case.decide()
    except ProtoPFaithError as error:
        case.fail(str(error))
        raise
    except Exception as error:
        case.fail(unexpected(error))
        raise


def _seen(case: Case) -> float:
    return case.seen
