"""One process at a time: a lock that ends with its process, however that ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protopfaith.errors import ProtoPFaithError


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Holds the lock file `path`; raises, naming the holder, if another process has it.

    The system gives the lock back when the process ends, also by kill -9, so none is ever stale. Where the
    system has no such locks (Windows), or the folder cannot be written to, nothing is locked.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, exclusive(Path(folder) / ".lock", "The run"):
    ...     pass
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError:
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(200).strip() or "another process"
            raise ProtoPFaithError(
                f"{what} is in use by {holder}; wait until it is done, or stop it, then try again."
            ) from None
        except OSError:  # a file system without locks
            yield
            return
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
