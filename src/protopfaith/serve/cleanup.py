"""Forgets old cases and gives their memory back, also while nobody asks anything."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def give_back() -> bool:
    """Returns freed memory to the system, where the C library keeps it for later; False: there is no more.

    >>> give_back()
    False
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # only glibc keeps so much, and has this
        return False
    return False


@contextmanager
def every(seconds: float, job: Callable[[], None]) -> Iterator[None]:
    """Does a short job again and again, until the block ends.

    Args:
        seconds: between two times
        job: what to do

    >>> with every(60.0, lambda: None):
    ...     pass
    """
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(seconds):
            job()

    thread = threading.Thread(target=work, name="cleanup", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=30)
