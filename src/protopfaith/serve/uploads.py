"""Images from visitors: limited, decoded as everywhere else, and never where others could read them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
import threading
from pathlib import Path

from PIL import Image

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.writing import host_mark, is_running

DICOM_MARK = slice(128, 132)
LONGEST_NAME = 80
PREFIX = f"protopfaith-serve-{host_mark()}-"


class PrivateFolder:
    """A folder that only this user can read; it goes with the server unless it is kept.

    Those of servers that were killed go when the next one starts.

    Args:
        keep: whether files stay, also after the end.

    >>> with PrivateFolder() as folder:
    ...     oct(folder.path.stat().st_mode & 0o777)
    '0o700'
    """

    def __init__(self, keep: bool = False):
        self.keep = keep
        _remove_deserted()
        prefix = "protopfaith-kept-" if keep else f"{PREFIX}{os.getpid()}-"
        self.path = Path(tempfile.mkdtemp(prefix=prefix))  # mode 0700
        self._one_at_a_time = threading.Semaphore(2)  # decoding takes many times a file's size in memory

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)

    def decode(self, content: bytes, name: str, preprocessing: Preprocessing) -> Image.Image:
        """The image in an upload, read as its network's training images are.

        Args:
            content: of the file.
            name: as the visitor calls it; only says whether it may be DICOM, and is no path.
            preprocessing: of the network.
        """
        if not content:
            raise ProtoPFaithError("The file is empty; choose another one.")
        dicom = content[DICOM_MARK] == b"DICM" or name.lower().endswith((".dcm", ".dicom"))
        path = self.path / f"{secrets.token_hex(16)}{'.dcm' if dicom else '.image'}"
        with self._one_at_a_time:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                return preprocessing.read(path)
            except ProtoPFaithError as error:
                raise ProtoPFaithError(_for_visitors(str(error), path, name)) from error
            finally:
                if not self.keep:
                    path.unlink(missing_ok=True)


def _remove_deserted() -> None:
    """Removes the folders of servers on this machine that no longer run: an image may lie there."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        process = path.name.removeprefix(PREFIX).split("-")[0]
        if process.isdecimal() and not is_running(int(process)):
            shutil.rmtree(path, ignore_errors=True)  # others' folders stay: this user may not


def shown_name(name: str) -> str:
    """What a visitor's file is called on pages: its last part, without control characters.

    >>> shown_name("C:\\\\scans\\\\../a\\nb.png")
    'ab.png'
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(letter for letter in last if letter.isprintable()).strip()
    return plain[:LONGEST_NAME] or "image"


def _for_visitors(text: str, path: Path, name: str) -> str:
    """What is wrong with a file, under the name that its owner knows, without advice for data sets."""
    said = text.replace(str(path), name).replace(path.name, name)
    return f"{said.partition('; replace')[0].rstrip('.')}; choose another file."
