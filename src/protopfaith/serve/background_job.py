"""Work that takes longer than a moment, done piece by piece in turn with everybody's games."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from protopfaith.errors import ProtoPFaithError


class BackgroundJob:
    """Something for one visitor that the worker does a piece of whenever it is that visitor's turn.

    Args:
        visitor: who asked for it.
        pieces: a generator that does a piece at every step, and returns the result.

    >>> def pieces():
    ...     yield
    ...     return 42
    >>> job = BackgroundJob("somebody", pieces())
    >>> while job.wants_to_play:
    ...     job.play()
    >>> job.result.result()
    42
    """

    is_awaited = True

    def __init__(self, visitor: str, pieces: Generator[None, None, Any]):
        self.visitor, self._pieces = visitor, pieces
        self.result: Future[Any] = Future()

    @property
    def wants_to_play(self) -> bool:
        """Whether it is neither done nor given up."""
        return not self.result.done()

    def play(self) -> None:
        """One piece."""
        try:
            next(self._pieces)
        except StopIteration as end:
            if not self.result.done():
                self.result.set_result(end.value)

    def fail(self, message: str) -> None:
        if not self.result.done():
            self.result.set_exception(ProtoPFaithError(message))

    def told(self, before: int) -> None:
        """Its place in the queue; the page shows that of the map."""
