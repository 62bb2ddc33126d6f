"""Image files that are damaged, and that decoders read all the same, with other pixels than they had."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import BinaryIO

PNG_START = 8  # bytes, before the first chunk
PIXELS = (b"IDAT", b"fdAT")
START_OF_SCAN, END_OF_IMAGE = b"\xff\xda", b"\xff\xd9"
ZEROS = bytes(64)
BLOCK = 1 << 20


def check_undamaged(path: Path, kind: str | None) -> None:
    """Raises `ValueError` where it is certain that a picture is not the one that was written. Formats without
    a checksum, and without an end, do not tell.

    Args:
        path: of the file
        kind: its format, as Pillow calls it

    >>> from tempfile import mkdtemp
    >>> from PIL import Image
    >>> file = Path(mkdtemp()) / "a.png"
    >>> Image.effect_noise((32, 32), 50).save(file)
    >>> content = file.read_bytes()
    >>> _ = file.write_bytes(content[:500] + bytes(len(content) - 500))
    >>> check_undamaged(file, "PNG")
    Traceback (most recent call last):
    ValueError: its content is damaged, as by a broken download: a checksum in it does not fit
    """
    check = {"PNG": _check_png, "JPEG": _check_jpeg, "MPO": _check_jpeg}.get(kind or "")
    if check is not None:
        with path.open("rb") as file:
            check(file)


def _check_png(file: BinaryIO) -> None:
    """Pixels against their checksums, at which Pillow does not look; it does at those of other chunks."""
    file.seek(PNG_START)
    while len(header := file.read(8)) == 8:
        length, name = struct.unpack(">I4s", header)
        if name not in PIXELS:
            if name == b"IEND":
                return
            file.seek(length + 4, 1)
            continue
        found, left = zlib.crc32(name), length
        while left and (block := file.read(min(left, BLOCK))):
            found, left = zlib.crc32(block, found), left - len(block)
        known = file.read(4)
        if len(known) == 4 and int.from_bytes(known, "big") != found:  # what is cut is told by Pillow
            raise ValueError("its content is damaged, as by a broken download: a checksum in it does not fit")


def _check_jpeg(file: BinaryIO) -> None:
    """There is no checksum; but what ends in zeros and never says that the picture ends was not all written.
    After the end there may be zeros, and before the picture a small one with an end of its own."""
    size = file.seek(0, 2)
    file.seek(max(size - len(ZEROS), 0))
    if file.read() != ZEROS:
        return
    file.seek(0)
    content = file.read()
    if content.rfind(END_OF_IMAGE) < content.rfind(START_OF_SCAN):
        raise ValueError(
            "its content is damaged, as by a broken download: it has no end, and zeros in its place"
        )
