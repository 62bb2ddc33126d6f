"""One process at a time: a lock that ends with its process, however that ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from protopfaith.errors import ProtoPFaithError


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Holds the lock file `path`; raises, naming the holder, if another process has it.

    The system gives the lock back when the process ends, also by kill -9, so none is ever stale. Where the
    system has no such locks (Windows), or the folder cannot be written to, nothing is locked.

    Args:
        path: the lock's file; it is there while the lock is held
        what: begins the sentence

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, exclusive(Path(folder) / ".lock", "The run"):
    ...     (Path(folder) / ".lock").is_file()
    True
    """
    file = _acquire(path, what)
    if file is None:
        yield
        return
    with file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _acquire(path: Path, what: str) -> IO[str] | None:
    """The locked file, or None where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    while True:
        try:
            file = path.open("a+", encoding="utf-8")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(200).strip() or "another process"
            file.close()
            raise ProtoPFaithError(
                f"{what} is in use by {holder}; wait until it is done, or stop it, then try again."
            ) from None
        except OSError:  # a read-only folder, or a file system without locks
            return None
        if _is_there(path, file):
            return file
        file.close()  # its last holder has just removed it: another one counts now


def _is_there(path: Path, file: IO[str]) -> bool:
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except OSError:
        return False
