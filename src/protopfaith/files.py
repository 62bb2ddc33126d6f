"""Files from elsewhere: what they hold, or one sentence where that is not what it should be."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from protopfaith import arguments
from protopfaith.errors import ProtoPFaithError

LARGEST_TEXT = 50_000_000
ENDS = {".png": b"IEND", ".html": b"</html>", ".svg": b"</svg>", ".pdf": b"%%EOF"}
TAIL = 1024  # bytes, within which these stand in a file that was not cut


WORDS = {
    r"thrift|magic bytes|page integrity|(broken|unrecognized) data stream|while decompress|unexpected tag": (
        "its content is damaged, or not what its name says"
    ),
    r"force=True|'DICM' prefix": "it has no mark of a DICOM file",
    r"embedded null": "its name has a null byte in it",
}
"""What other libraries say, in words for people."""
INTERNAL = (
    r"has no attribute '|argument must be|not subscriptable|Unknown Value Representation|index out of range"
)


def sha256(path: Path | str) -> str:
    """The hexadecimal SHA-256 of a file's content."""
    with Path(path).open("rb") as file:
        digest = hashlib.sha256()
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def is_file(path: Path) -> bool:
    """Whether there is a file (no folder, no pipe); a name that the system cannot hold is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def leads_nowhere(path: Path) -> bool:
    """Whether it is a link to a file that is not there, such as data that were never fetched."""
    try:
        return path.is_symlink() and not path.exists()
    except (OSError, RuntimeError):  # a target that the system cannot hold, a link to itself
        return True


def begins(path: Path, beginning: bytes) -> bool:
    """Whether a file begins so, is empty or cannot be looked into, which is told by whoever writes there."""
    if not is_file(path):  # a pipe would be waited for
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(beginning)) in (beginning, b"")
    except OSError:
        return True


def is_folder(path: Path) -> bool:
    """The same for a folder."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


RUN = ("recipe.yaml", "model.safetensors")
"""What the folder of a training holds, whose pictures are curves and confusion matrices."""


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a training."""
    return all(is_file(folder / name) for name in RUN)


def refuse_run(folder: Path) -> None:
    """Raises if the folder of a training is given where images are expected."""
    if is_run(folder):
        raise ProtoPFaithError(
            f"{arguments.named(folder)} is the folder of a run, whose pictures are its results, where images "
            "are expected; give the folder of these."
        )


def check_plain(path: Path) -> None:
    """Raises if a folder, a pipe or a device is in the place of a file."""
    if not path.exists() or path.is_file():
        return
    kind = "a folder" if path.is_dir() else "no plain file"
    raise ProtoPFaithError(
        f"{arguments.named(path)} is {kind}, where a file is expected; put the file there."
    )


def check_folder(path: Path) -> None:
    """Raises if a file, a pipe or a device is in the place of a folder."""
    if path.exists() and not path.is_dir():
        raise ProtoPFaithError(
            f"{arguments.named(path)} is a file, where a folder is expected; move it away."
        )


def check_readable(path: Path | str) -> None:
    """Raises if a file is there but the system does not give its content: other libraries call it missing."""
    check_plain(Path(path))
    try:
        with plain_file(path).open("rb") as file:
            file.read(1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return  # not there: whoever asked has better words for that
    except OSError as error:
        raise ProtoPFaithError(
            f"{arguments.named(path)} cannot be read ({reason(error)}); check its permissions."
        ) from error


def plain_file(path: Path | str) -> Path:
    """The same path; raises `OSError` if it is a pipe or a device, on which a reader might wait forever."""
    path = Path(path)
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no plain file")
    return path


def is_whole(path: Path) -> bool:
    """Whether a page or picture is there up to its end; one without a known end, whether it has anything.

    Args:
        path: the file
    """
    try:
        with plain_file(path).open("rb") as file:
            file.seek(-min(path.stat().st_size, TAIL), os.SEEK_END)
            end = file.read()
    except OSError:
        return False
    return bool(end) and ENDS.get(path.suffix.lower(), b"") in end


def read_plain_text(path: Path, expected: str) -> str:
    """The UTF-8 text in a file of moderate size; `expected` ends the sentence if there is none."""
    try:
        if not path.is_file():
            raise ProtoPFaithError(f"There is no file {path}; give {expected}.")
        if path.stat().st_size > LARGEST_TEXT:
            raise ProtoPFaithError(f"{path} has more than {LARGEST_TEXT:,} bytes; give {expected}.")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProtoPFaithError(
            f"{path} is not a text file in UTF-8; give {expected}, saved as UTF-8."
        ) from error
    except (OSError, ValueError) as error:
        raise ProtoPFaithError(f"{path} cannot be read ({reason(error)}); give {expected}.") from error


def read_json(path: Path, expected: str) -> Any:
    """What a JSON file holds; `expected` ends the sentence if it is none."""
    text = read_plain_text(path, expected)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtoPFaithError(f"{path} is not valid JSON; give {expected}.") from error


def reason(error: BaseException) -> str:
    """What an exception says, in a few words on one line."""
    try:
        text = getattr(error, "strerror", None) or " ".join(str(error).split()).rstrip(".")
    except Exception:  # somebody's exception that cannot say what it is
        text = ""
    ours = next((words for pattern, words in WORDS.items() if re.search(pattern, str(text))), "")
    return ours or str(text)[:200] or type(error).__name__


def decoding_reason(error: BaseException) -> str:
    """The same of a decoder, which broken content may lead anywhere: its variables mean nothing to people.

    >>> decoding_reason(AttributeError("'str' object has no attribute 'is_compressed'"))
    'its content is damaged'
    """
    text = reason(error)
    return "its content is damaged" if re.search(INTERNAL, text) else text


def existing_folder(root: Path | None, name: str) -> Path:
    """The root as a folder that is there and holds something.

    Args:
        root: what the user gave
        name: of the data set, for the error

    >>> from tempfile import mkdtemp
    >>> existing_folder(Path(mkdtemp()), "shells")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    protopfaith.errors.ProtoPFaithError: The folder ... is empty; put the 'shells' data there ...
    """
    if root is None:
        raise ProtoPFaithError(
            f"The data set {name!r} needs the folder where it lies; give it as --root "
            "(root= in Python, data.root in a recipe)."
        )
    root = arguments.path(root, "The folder of the images")
    if not is_folder(root):
        raise ProtoPFaithError(f"There is no folder {root}; give the folder that holds the {name!r} data.")
    if not any(not path.name.startswith(".") for path in root.iterdir()):
        raise ProtoPFaithError(
            f"The folder {root} is empty; put the {name!r} data there or give another folder."
        )
    return root
