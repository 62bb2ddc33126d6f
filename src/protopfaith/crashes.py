"""Unexpected exceptions: one sentence for the person, and the traceback in a file for whoever can fix it."""

from __future__ import annotations

import errno
import platform
import re
import tempfile
import traceback
from datetime import datetime
from pathlib import Path

from protopfaith import __version__
from protopfaith.errors import is_out_of_memory
from protopfaith.files import reason

NAME = "protopfaith-error.log"
LARGEST = 1_000_000  # bytes, after which a log begins anew
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unexpected(error: BaseException, folder: Path | str = ".") -> str:
    """Appends the traceback to a log in `folder` (or where files can be written) and says so in one sentence.

    Args:
        error: what was raised
        folder: that of the results
    """
    if is_out_of_memory(error):
        return (
            f"There is not enough memory{_asked_for(error)}; use smaller images, a smaller batch or "
            "network, or fewer players."
        )
    if isinstance(error, OSError) and error.errno in FULL:  # nobody's mistake, so there is nothing to report
        why = reason(error)
        return f"There is no room to write to ({why}); free some space, then run the same command again."
    return f"Something unexpected went wrong ({logged(error, folder)}). Please report it as an issue."


def _asked_for(error: BaseException) -> str:
    """How much was wanted at once, where torch says it."""
    found = re.search(r"allocate (\d+(?:\.\d+)?) ?(bytes|[KMGT]i?B)", f"{error}")
    if found is None:
        return ""
    amount, unit = found.groups()
    return (
        f" for {int(float(amount)) / 1e9:,.1f} GB at once"
        if unit == "bytes"
        else f" for {amount} {unit} at once"
    )


def logged(error: BaseException, folder: Path | str = ".") -> str:
    """What was raised, in a few words, and where its traceback is now.

    Args:
        error: what was raised
        folder: that of the results
    """
    place = _write(error, [Path(folder), Path(), Path(tempfile.gettempdir())])
    where = f"; details are in {place}" if place is not None else ""
    return f"{type(error).__name__}: {reason(error)}{where}"


def _write(error: BaseException, folders: list[Path]) -> Path | None:
    text = "".join(traceback.format_exception(error))
    head = (
        f"{datetime.now():%Y-%m-%d %H:%M:%S} protopfaith {__version__}, Python {platform.python_version()}\n"
    )
    for folder in folders:
        path = folder / NAME
        try:
            if not folder.is_dir():
                continue
            mode = "a" if path.is_file() and path.stat().st_size < LARGEST else "w"
            with path.open(mode, encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{head}{text}\n")
        except OSError:
            continue
        return path
    return None
