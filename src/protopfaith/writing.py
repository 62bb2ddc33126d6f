"""Results that are either whole or absent, and the checks that nothing is overwritten that is not ours."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import socket
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protopfaith import arguments
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, is_folder, reason

MANIFEST = "_bulk.json"
"""Of a data set of explanations; names with an underscore are none of the data to those who read Parquet."""
AGAIN = "run the same command again."
PAGE = (
    b'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    b'<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; img-src data:'
)
"""What pages of ours begin with, so that they may be overwritten and other pages not."""
UNKNOWN_OWNER = 86_400.0  # seconds after which a leftover of another machine counts as one

_final_names: dict[Path, Path] = {}  # of what is being written now


@contextmanager
def atomic(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path beside `path` (a file, or a folder that is not there yet) and renames it
    when all went well.

    Whatever happens inside, also a power cut, `path` holds either what it held before or the new content,
    whole. A link is followed, so that what it points to is replaced and not the link.
    """
    path = arguments.path(path, "Where to write")
    if not path.name:
        raise ProtoPFaithError(f"{str(path)!r} is no file to write to; give another name.")
    path = _followed(path)
    if _is_stream(path):
        yield from _into_stream(path)
        return
    partial = path.with_name(_partial_name(path.name))
    _final_names[partial] = path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        _flush(partial)
        partial.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        raise ProtoPFaithError(
            f"Could not write {final_name(path)} ({error.strerror or error}); nothing was changed there: "
            f"{_remedy(error)}, then {AGAIN}"
        ) from error
    finally:
        _final_names.pop(partial, None)
        _remove(partial)


def _remedy(error: OSError) -> str:
    """What helps against an error of writing."""
    if isinstance(error, IsADirectoryError):
        return "move the folder of that name away, or give another name"
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return "move the file away that is in the place of a folder, or give another name"
    if error.errno == errno.ENOTEMPTY:  # looked at before the work, and made by somebody during it
        return "something else was put there meanwhile; move it away, or give another name"
    if error.errno == errno.ENAMETOOLONG:
        return "give a shorter name"
    return "free some space or check the permissions"


def _is_stream(path: Path) -> bool:
    """Whether it is a device, a pipe or the like, such as /dev/stdout: written to, never replaced."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)


_held: list[int] = []  # pipes that are written to later: without a writer their readers would end


def hold_pipe(path: Path) -> None:
    """Raises if nobody reads a pipe that results are to go to, before they are made; nothing else is a pipe.

    Args:
        path: where results will be written
    """
    try:
        if not stat.S_ISFIFO(path.stat().st_mode):
            return
        _held.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise ProtoPFaithError(
                f"{arguments.named(path)} is a pipe that nobody reads; start its reader, or give the name of "
                "a plain file."
            ) from error


def _into_stream(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / re.sub(r"[^A-Za-z0-9_.-]", "_", path.name)
        yield whole
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)  # a pipe that nobody reads is an error
            os.set_blocking(descriptor, True)
            with whole.open("rb") as source, os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise ProtoPFaithError(
                f"Could not write to {path} ({error.strerror or error}); give the name of a plain file."
            ) from error


def final_name(path: Path) -> Path:
    """What a path will be called when the folders around it have their names."""
    for parent in (path, *path.parents):
        if parent in _final_names:
            return final_name(_final_names[parent] / path.relative_to(parent))
    return path


def _followed(path: Path) -> Path:
    try:
        return path.resolve() if path.is_symlink() else path
    except (OSError, RuntimeError):  # a link to itself
        return path


def _partial_name(name: str) -> str:
    """Short enough for any file system, and with the process that writes it: see `remove_leftovers`."""
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]
    return f".{stem}.{host_mark()}.{os.getpid()}.{uuid.uuid4().hex[:8]}.partial"


def host_mark() -> str:
    """Eight letters that tell this machine from others on the same file system."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _flush(path: Path) -> None:
    """Makes sure that the content is on the disk before its name is."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())


def _flush_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError:  # not every file system can
        pass
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path | str) -> None:
    """Removes what killed processes left half-written in a folder; those that still run keep theirs."""
    try:
        found = [path for path in Path(folder).iterdir() if path.name.endswith(".partial")]
    except (OSError, ValueError):  # not there, or no name of a folder
        return
    for path in found:
        if path.name.startswith(".") and not _in_use(path):
            _remove(path)


def _in_use(path: Path) -> bool:
    parts = re.fullmatch(r".*\.([0-9a-f]{8})\.(\d+)\.[0-9a-f]{8}\.partial", path.name)
    if parts is None:  # of an earlier version
        return False
    if parts[1] != host_mark():
        try:
            return time.time() - path.lstat().st_mtime < UNKNOWN_OWNER
        except OSError:
            return False
    return is_running(int(parts[2]))


def is_running(process: int) -> bool:
    """Whether this machine runs a process of that number."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.is_symlink() or path.exists():
            path.unlink()
    except OSError:
        pass  # it says something went wrong already, or another process was faster


def check_free(folder: Path) -> None:
    """Raises if a data set of explanations would lie among things that are not ours: a run, a thesis."""
    name = arguments.named(folder)
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise ProtoPFaithError(
            f"{name} cannot be used for results ({reason(error)}); give another folder as --bulk."
        ) from error
    others = [name for name in names if not name.startswith((".", "_", "lost+found"))]
    if others and not is_file(folder / MANIFEST):  # else another shard has just begun it
        one = arguments.named(others[0])[:100]
        what = "a run" if "recipe.yaml" in others else f"things that are not ours, such as {one}"
        raise ProtoPFaithError(f"{name} holds {what}; give a folder as --bulk that is new or empty.")


def check_can_be_made(folder: Path) -> None:
    """Raises if nothing can be written to a folder: in its place, or that of one above it, there is a file or
    a folder that takes nothing new.

    Whether one may be is tried, by a folder that is gone at once: permissions do not say it all, as of a
    system's folders to its administrator, or of a file system without room.
    """
    try:
        nearest = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    except (OSError, ValueError, StopIteration):
        return  # told by whoever makes it
    if not is_folder(nearest):
        if nearest == folder:
            return  # told by whoever would overwrite it
        raise ProtoPFaithError(
            f"{arguments.named(folder)} cannot be a folder, since {arguments.named(nearest)} is none; choose "
            "another."
        )
    try:
        Path(tempfile.mkdtemp(prefix=".protopfaith-", dir=nearest)).rmdir()
    except OSError as error:
        raise ProtoPFaithError(
            f"{arguments.named(folder)} cannot be written: in {arguments.named(nearest)} nothing can be made "
            f"({reason(error)}); choose another."
        ) from error


def refuse_others(path: Path, suffixes: tuple[str, ...], beginning: bytes, what: str) -> None:
    """Raises if a result would overwrite a file that is none of its kind: a photo, a model.

    Args:
        path: where to write
        suffixes: of such results, the usual one first
        beginning: of their content, in lower case
        what: such a result is, for people
    """
    try:
        if not path.is_file() or path.suffix.lower() in suffixes or not path.stat().st_size:
            return
        with path.open("rb") as file:
            is_ours = file.read(20).lower().startswith(beginning)
    except OSError:  # said by whoever writes
        return
    if not is_ours:
        raise ProtoPFaithError(
            f"{arguments.named(path)} is there already and no {what}, so it is not overwritten; give another "
            f"name, such as result{suffixes[0]}."
        )


def refuse_existing(folder: Path) -> None:
    """Raises if the folder holds something already, or cannot be made."""
    check_can_be_made(folder)
    try:
        taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise ProtoPFaithError(
            f"{folder} cannot be a run folder ({reason(error)}); choose another."
        ) from error
    if taken:
        raise ProtoPFaithError(
            f"{folder} is there already and is not overwritten; choose another folder, or resume its run."
        )
