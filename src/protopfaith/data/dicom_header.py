"""What a DICOM header says about its pixels, checked and put in order before anything is decoded."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from protopfaith.errors import ProtoPFaithError
from protopfaith.files import reason
from protopfaith.limits import check_pixels

GRAY = frozenset({"MONOCHROME1", "MONOCHROME2"})
PALETTE = "PALETTE COLOR"
COLORS = frozenset({"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT"})  # which pydicom makes RGB

# Markers of JPEG and JPEG-LS that are followed by the size of the picture: all SOFs, and DHP.
SIZES = frozenset({*range(0xC0, 0xD0), 0xDE, 0xF7}) - {0xC4, 0xC8, 0xCC}
JPEG, JPEG_2000 = b"\xff\xd8", b"\xff\x4f\xff\x51"


REQUIRED = ("StudyInstanceUID", "SeriesInstanceUID", "SOPClassUID", "SOPInstanceUID")
"""Without these nothing can be added to the study of an image."""


def find_study(path: Path) -> Any:
    """The header of an image; raises if it is no DICOM file, or does not say which study it belongs to.

    Args:
        path: of the image
    """
    import pydicom

    try:
        source = pydicom.dcmread(path, stop_before_pixels=True)
    except Exception as error:  # whatever another kind of file leads to
        if has_mark(path):
            raise ProtoPFaithError(
                f"The DICOM file {path.name} cannot be read ({reason(error)}), so there is no study to add "
                "an explanation to; give another copy of it, or leave --dicom out."
            ) from error
        raise ProtoPFaithError(
            f"{path.name} is no DICOM file, so there is no study to add an explanation to; leave --dicom out."
        ) from error
    missing = [name for name in REQUIRED if not source.get(name)]
    if missing:
        raise ProtoPFaithError(
            f"The DICOM file {path.name} has no {missing[0]}, so nothing can be added to its study; leave "
            "--dicom out."
        )
    return source


def has_mark(path: Path) -> bool:
    """Whether a file has the mark of DICOM files, whatever follows.

    Args:
        path: of the file
    """
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError:
        return False


def check_colors(dataset: Any) -> None:
    """Raises if the numbers of a pixel are not said to be gray, a color or an entry of a palette."""
    kind = str(dataset.get("PhotometricInterpretation") or "")
    known = {1: GRAY | {PALETTE}, 3: COLORS}.get(dataset.get("SamplesPerPixel"), frozenset())
    if kind not in known:
        raise ValueError(
            f"its pixels of {dataset.get('SamplesPerPixel')} samples, called {kind!r}, are neither gray nor "
            "a color that is known"
        )


def settle_transformations(dataset: Any) -> None:
    """Leaves slope and intercept, window and lookup tables in the header as they are to be applied: what is
    empty is dropped, the other half of a pair is added. Raises if one is broken.

    Args:
        dataset: of pydicom; it is changed
    """
    slope, intercept = (_number(dataset, name) for name in ("RescaleSlope", "RescaleIntercept"))
    if slope is not None or intercept is not None:
        slope, intercept = 1.0 if slope is None else slope, intercept or 0.0
        if slope == 0:  # every pixel would be the same
            raise ValueError("its rescale slope is 0")
        if not math.isfinite(slope * 2.0**64 + intercept):
            raise ValueError(f"its rescale slope {slope} and intercept {intercept} lead to no numbers")
        dataset.RescaleSlope, dataset.RescaleIntercept = slope, intercept
    window = [_number(dataset, name) for name in ("WindowCenter", "WindowWidth")]
    if None in window:  # half a window is none
        for name in ("WindowCenter", "WindowWidth"):
            dataset.pop(name, None)
    for name in ("ModalityLUTSequence", "VOILUTSequence"):
        _check_table(dataset, name)


def _number(dataset: Any, name: str) -> float | None:
    """The first number of a tag, None where it is missing or empty."""
    try:
        value = dataset.get(name)
        first = value if isinstance(value, (str, float, int)) else next(iter(value or ()), None)
        number = None if first is None or first == "" else float(first)
    except (TypeError, ValueError) as error:
        raise ValueError(f"its {_words(name)} is no number") from error
    if number is not None and not math.isfinite(number):
        raise ValueError(f"its {_words(name)} is {number}")
    if number is None:
        dataset.pop(name, None)
    return number


def _check_table(dataset: Any, name: str) -> None:
    tables = dataset.get(name)
    if not tables:
        dataset.pop(name, None)
    elif not (tables[0].get("LUTDescriptor") and tables[0].get("LUTData")):
        raise ValueError(f"its {_words(name)} has no table")


def widen_palette(dataset: Any) -> None:
    """Entries of 8 bits as 16: with 8, pydicom would count pixels with 8 bits as well. Drops the byte that
    makes an odd number of them even.

    Args:
        dataset: of pydicom; it is changed
    """
    for color in ("Red", "Green", "Blue"):
        descriptor = dataset.get(f"{color}PaletteColorLookupTableDescriptor")
        entries = (descriptor[0] or 1 << 16) if descriptor else 0
        name = f"{color}PaletteColorLookupTableData"
        data = dataset.get(name)
        if data and len(data) == entries + entries % 2:
            wide = np.frombuffer(data[:entries], np.uint8).astype(np.uint16)
            setattr(dataset, name, wide.tobytes())


def _words(name: str) -> str:
    """`RescaleSlope` as a reader would say it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=LUT)", " ", name).strip()


def check_compressed(dataset: Any, place: int | None) -> None:
    """Raises if compressed pixels say another size than the header: decoders take memory for theirs.

    Args:
        dataset: of pydicom
        place: of the frame in a file of several, from 0
    """
    from pydicom.encaps import get_frame

    if not dataset.file_meta.get("TransferSyntaxUID"):
        raise ValueError("its header does not say how its pixels are stored: its transfer syntax is empty")
    if not dataset.file_meta.TransferSyntaxUID.is_compressed or "PixelData" not in dataset:
        return
    if dataset.file_meta.TransferSyntaxUID.is_deflated:
        return
    frames = int(dataset.get("NumberOfFrames") or 1)
    found = codestream_size(get_frame(dataset.PixelData, place or 0, number_of_frames=frames))
    if found is None:
        return
    rows, columns = found
    check_pixels(columns, rows, f"The compressed picture in {dataset.filename}")
    if found != (dataset.Rows, dataset.Columns):
        raise ValueError(
            f"the compressed picture inside has {rows} rows of {columns}, the header says {dataset.Rows} of "
            f"{dataset.Columns}"
        )


def codestream_size(content: bytes) -> tuple[int, int] | None:
    """Rows and columns of a JPEG, JPEG-LS or JPEG 2000 picture; None for anything else.

    Args:
        content: the compressed picture

    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (40, 30)).save(file, "jpeg")
    >>> codestream_size(file.getvalue())
    (30, 40)
    """
    start = content.find(JPEG_2000)
    if not content.startswith(JPEG) and start >= 0:
        right, bottom, left, top = (
            int.from_bytes(content[at : at + 4], "big") for at in range(start + 8, start + 24, 4)
        )
        return bottom - top, right - left
    at = 2 if content.startswith(JPEG) else len(content)
    while at + 9 <= len(content):
        marker = content[at + 1]
        if content[at] != 0xFF or marker == 0xFF:  # bytes that fill up are allowed before a marker
            at += 1
        elif marker in SIZES:
            return int.from_bytes(content[at + 5 : at + 7], "big"), int.from_bytes(
                content[at + 7 : at + 9], "big"
            )
        else:
            at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return None
