"""Reading files of several arrays from elsewhere: no code runs, and what is declared is checked first."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from protopfaith.errors import ProtoPFaithError
from protopfaith.files import plain_file
from protopfaith.limits import limit


def read_npz(path: Path | str) -> dict[str, np.ndarray]:
    """The arrays in an `.npz` file by name; raises anything if it is none.

    Args:
        path: the file

    Raises:
        ProtoPFaithError: if the arrays would take more memory than `PROTOPFAITH_MAX_FILE` bytes

    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "a.npz"
    >>> np.savez(file, values=np.arange(3))
    >>> read_npz(file)["values"].tolist()
    [0, 1, 2]
    """
    path = plain_file(path)
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    most = limit("PROTOPFAITH_MAX_FILE")
    if size > most:
        raise ProtoPFaithError(
            f"The arrays in {path} have {size:,} bytes, more than {most:,}; raise the limit by the "
            "environment variable PROTOPFAITH_MAX_FILE if they are yours."
        )
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
