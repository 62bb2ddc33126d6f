"""Files that are either whole or absent, and fingerprints that tell whether they changed."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from protopfaith.errors import ProtoPFaithError


@contextmanager
def atomic(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path beside `path` (a file, or a folder that is not there yet) and renames it
    when all went well.

    Whatever happens inside, `path` holds either what it held before or the new content, whole.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise ProtoPFaithError(
            f"Could not write {path} ({error.strerror or error}); nothing was changed there: free some space "
            "or check the permissions, then run the same command again."
        ) from error
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        path.unlink()


def sha256(path: Path | str) -> str:
    """The hexadecimal SHA-256 of a file's content."""
    with Path(path).open("rb") as file:
        digest = hashlib.sha256()
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
