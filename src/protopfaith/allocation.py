"""Keeps freed memory in the process, for the next batch, instead of giving it back to the system.

glibc hands large blocks back to the system as soon as they are freed, and the system clears every page before
it lends them out anew. A network's activations are such blocks, and each batch wants the same ones again: on
a CPU this can take half of the time of a pass. Here they stay with the process instead.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # as malloc.h numbers them
NEVER = 2**31 - 1
KEPT = {TRIM_THRESHOLD: NEVER, MMAP_MAX: 0}
USUAL = {TRIM_THRESHOLD: 128 * 1024, MMAP_MAX: 65_536}


class Keeper:
    """Keeps freed memory while anybody wants it kept."""

    def __init__(self) -> None:
        self.users, self.lock = 0, Lock()

    def begin(self) -> None:
        """One more wants it."""
        with self.lock:
            self.users += 1
            if self.users == 1:
                _set(KEPT)

    def end(self) -> None:
        """One less wants it; after the last one what is free goes back to the system."""
        with self.lock:
            self.users -= 1
            if not self.users:
                _set(USUAL)
                _give_back()


KEEPER = Keeper()


def keep_freed_memory() -> None:
    """For the rest of this process, which is then ours as a whole: a command."""
    KEEPER.begin()


@contextmanager
def keeping_freed_memory() -> Iterator[None]:
    """While something is computed; what is free then goes back to the system.

    Where there is no glibc, or the environment sets its allocator (`MALLOC_MMAP_MAX_`, `GLIBC_TUNABLES`),
    everything stays as it is.

    >>> with keeping_freed_memory():
    ...     blocks = [bytes(10_000_000) for _ in range(3)]
    """
    KEEPER.begin()
    try:
        yield
    finally:
        KEEPER.end()


def _set(options: dict[int, int]) -> None:
    set_option = _function("mallopt")
    if set_option is not None and not _set_by_environment():
        for option, value in options.items():
            set_option(option, value)


def _give_back() -> None:
    trim = _function("malloc_trim")
    if trim is not None and not _set_by_environment():
        trim(0)


def _set_by_environment() -> bool:
    return "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(
        name.startswith(("MALLOC_MMAP", "MALLOC_TRIM", "MALLOC_TOP")) for name in os.environ
    )


def _function(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where it has none of that name."""
    if sys.platform != "linux":
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
