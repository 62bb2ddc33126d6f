"""What a page shows of a case: named blocks of HTML, the newest of which every reader gets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

Block = tuple[int, str]  # when it was written, and what it says


class LiveBlocks:
    """Blocks that a worker writes and any number of pages read.

    A slow reader does not hold anybody up and nothing piles up: readers ask for what changed since they last
    looked, and get each block once, as it is now.

    >>> blocks = LiveBlocks()
    >>> blocks.write({"map": "<p>1</p>"})
    >>> blocks.write({"map": "<p>2</p>"})
    >>> blocks.since(0)
    (2, {'map': '<p>2</p>'})
    >>> blocks.since(2)
    (2, {})
    """

    def __init__(self) -> None:
        self._blocks: dict[str, Block] = {}
        self._version = 0
        self._lock = threading.Lock()
        self._bells: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def write(self, blocks: Mapping[str, str]) -> None:
        """Replaces blocks, those that changed, and wakes the readers up."""
        with self._lock:
            changed = {name: text for name, text in blocks.items() if self._text(name) != text}
            if not changed:
                return
            self._version += 1
            self._blocks |= {name: (self._version, text) for name, text in changed.items()}
            bells = list(self._bells.items())
        for bell, loop in bells:
            try:
                loop.call_soon_threadsafe(bell.set)
            except RuntimeError:  # the loop has ended, and with it its readers
                continue

    def since(self, version: int) -> tuple[int, dict[str, str]]:
        """The newest version, and what was written after `version`."""
        with self._lock:
            new = {name: text for name, (when, text) in self._blocks.items() if when > version}
            return self._version, new

    @property
    def readers(self) -> int:
        """Pages that are open now."""
        with self._lock:
            return len(self._bells)

    def join(self) -> asyncio.Event:
        """A new reader's bell: set whenever something is written."""
        bell = asyncio.Event()
        with self._lock:
            self._bells[bell] = asyncio.get_running_loop()
        return bell

    def leave(self, bell: asyncio.Event) -> None:
        with self._lock:
            self._bells.pop(bell, None)

    def _text(self, name: str) -> str | None:
        return self._blocks[name][1] if name in self._blocks else None
