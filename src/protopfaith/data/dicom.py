"""One DICOM file as an 8-bit picture, the way a radiologist's screen would show it."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from protopfaith.data.dicom_header import (
    PALETTE,
    check_colors,
    check_compressed,
    settle_transformations,
    widen_palette,
)
from protopfaith.data.eight_bits import finite_range, spread
from protopfaith.data.frames import check_frame
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import decoding_reason
from protopfaith.limits import check_pixels, limit

DEFLATED = "1.2.840.10008.1.2.1.99"


def read_dicom(path: Path, frame: int | None = None, *, rescaled: bool = False) -> Image.Image:
    """Decodes any transfer syntax pydicom has a decoder for, applies the modality and window (or lookup
    table), looks up the colors of a palette, and inverts MONOCHROME1. Values that are not 8 bits afterwards
    are scaled from their range to 0..255. Of a file with several frames one must be chosen, from 1.
    `rescaled`: whether the caller scales the values itself, so that the window does not count."""
    with _naming(path):
        dataset = _read(path)
        place = _check_declared(dataset, path, frame)
        pixels = _pixels(dataset, place)
        image = _to_image(dataset, pixels)
        if not rescaled:
            _check_varied(pixels, np.asarray(image), "its window, or its rescale slope and intercept, make")
        return image


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Decoders of broken pixel data raise anything, and warn of it; the message has to name the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ProtoPFaithError:
        raise
    except Exception as error:
        raise ProtoPFaithError(
            f"The pixels of the DICOM file {path} cannot be read ({decoding_reason(error)}); replace it, "
            "remove it, or ask for unreadable images to be skipped."
        ) from error


def count_dicom_frames(path: Path) -> int:
    """How many pictures the header says there are."""
    return _frames(_read(path, header_only=True), path)


def _frames(dataset: Any, path: Path) -> int:
    try:
        frames = int(dataset.get("NumberOfFrames") or 1)
        if frames < 1:
            raise ValueError(frames)
        return frames
    except (TypeError, ValueError) as error:
        raise ProtoPFaithError(
            f"The header of the DICOM file {path} has no usable number of frames; replace or remove it."
        ) from error


def patient(path: Path) -> dict[str, Any]:
    """Who is on the picture: `id`, `age` in years and `sex`, each None when the header does not say."""
    dataset = _read(path, header_only=True)
    return {
        "id": str(dataset.get("PatientID") or "") or None,
        "age": age_in_years(str(dataset.get("PatientAge") or "")),
        "sex": str(dataset.get("PatientSex") or "").strip().upper() or None,
    }


def age_in_years(text: str) -> int | None:
    """DICOM ages are three digits and a unit; RSNA leaves out the unit.

    >>> age_in_years("051Y"), age_in_years("58"), age_in_years("018M"), age_in_years("")
    (51, 58, 1, None)
    """
    found = re.fullmatch(r"\s*(\d{1,3})([DWMY]?)\s*", text.upper())
    if not found:
        return None
    per_year = {"D": 365, "W": 52, "M": 12, "Y": 1, "": 1}
    return int(found[1]) // per_year[found[2]]


def _read(path: Path, header_only: bool = False) -> Any:
    try:
        import pydicom
    except ImportError as error:
        raise ProtoPFaithError(
            "Reading DICOM files needs pydicom; install it with: pip install 'protopfaith[rsna]'."
        ) from error
    try:
        _check_inflated(path)
        return pydicom.dcmread(path, stop_before_pixels=header_only)
    except ProtoPFaithError:
        raise
    except Exception as error:
        raise ProtoPFaithError(
            f"{path} cannot be read as a DICOM file ({decoding_reason(error)}); replace it, remove it, or "
            "ask for unreadable images to be skipped."
        ) from error


def _check_declared(dataset: Any, path: Path, frame: int | None = None) -> int | None:
    """Raises if the header says more pixels than an image may have, or has no such frame. The frame's place
    in a file of several, from 0; None for a single picture."""
    rows, columns = int(dataset.get("Rows") or 0), int(dataset.get("Columns") or 0)
    if rows < 1 or columns < 1:
        raise ValueError("it has no pixels")
    if "PixelData" in dataset and not dataset.PixelData:
        raise ValueError("its pixels are empty")
    check_pixels(columns, rows, f"The DICOM file {path}")
    frames = _frames(dataset, path)
    if frame is None and frames != 1:
        raise ProtoPFaithError(
            f"The DICOM file {path} holds {frames} frames; give one of them as {path.name}#1, or by --frame."
        )
    place = check_frame(path, frame, frames)
    return None if frames == 1 else place


def _check_inflated(path: Path) -> None:
    """Raises if a deflated file would grow beyond what one image can be: pydicom inflates it as a whole."""
    from pydicom.filereader import _read_file_meta_info, read_preamble

    most = 8 * limit("PROTOPFAITH_MAX_PIXELS")
    if path.stat().st_size > most:
        raise ProtoPFaithError(
            f"{path} has {path.stat().st_size:,} bytes, more than {most:,}; give one image in a file, or "
            "raise the limit by the environment variable PROTOPFAITH_MAX_PIXELS."
        )
    with path.open("rb") as file:
        read_preamble(file, force=False)
        if _read_file_meta_info(file).get("TransferSyntaxUID") != DEFLATED:
            return
        inflater, size = zlib.decompressobj(-zlib.MAX_WBITS), 0
        while block := inflater.unconsumed_tail or file.read(1 << 16):
            size += len(inflater.decompress(block, 1 << 22))
            if size > most:
                raise ProtoPFaithError(
                    f"The DICOM file {path} inflates to more than {most:,} bytes; give one image in a file, "
                    "or raise the limit by the environment variable PROTOPFAITH_MAX_PIXELS."
                )


def _pixels(dataset: Any, place: int | None) -> np.ndarray:
    """The values of one frame, whose own transformations are put where those of a single picture are."""
    from pydicom.pixels import pixel_array

    check_colors(dataset)
    check_compressed(dataset, place)
    if place is None:
        pixels = dataset.pixel_array
    else:
        _use_frame(dataset, place)
        pixels = pixel_array(dataset, index=place)
    if dataset.PhotometricInterpretation == PALETTE:
        return _from_palette(pixels, dataset)
    settle_transformations(dataset)
    return pixels


def _from_palette(pixels: np.ndarray, dataset: Any) -> np.ndarray:
    """Colors of 8 bits. Some files say 16 bits of entries that have 8: the values tell."""
    from pydicom.pixels import apply_color_lut

    widen_palette(dataset)
    colors = apply_color_lut(pixels, dataset)[..., :3]
    return (colors if colors.max() <= 255 else colors >> 8).astype(np.uint8)


def _use_frame(dataset: Any, place: int) -> None:
    groups = [dataset.get("SharedFunctionalGroupsSequence"), dataset.get("PerFrameFunctionalGroupsSequence")]
    for group, at in zip(groups, (0, place), strict=True):
        if group is None or at >= len(group):
            continue
        for name in ("PixelValueTransformationSequence", "FrameVOILUTSequence"):
            for found in group[at].get(name) or ():
                dataset.update(found)


def _check_varied(before: np.ndarray, after: np.ndarray, why: str) -> None:
    """Raises if pixels that differ all became the same: there would be nothing on the picture."""
    if after.min() == after.max() and before.min() != before.max():
        raise ValueError(f"{why} all of its pixels the same")


def _to_image(dataset: Any, pixels: np.ndarray) -> Image.Image:
    from pydicom.pixels import apply_modality_lut

    if pixels.ndim == 3 and pixels.shape[2] == 3:
        return Image.fromarray(_to_8_bits(pixels))
    if pixels.ndim != 2:
        raise ValueError(f"one frame is expected, not an array of shape {pixels.shape}")
    pixels = _through_window(apply_modality_lut(pixels, dataset), dataset)
    gray = _to_8_bits(pixels, stored=int(dataset.get("BitsStored") or 8))
    if dataset.get("PhotometricInterpretation") == "MONOCHROME1":
        gray = 255 - gray
    return Image.fromarray(gray)


def _through_window(pixels: np.ndarray, dataset: Any) -> np.ndarray:
    """Entries of 8 bits make pydicom count pixels with 8 bits as well, so they are called 16 meanwhile."""
    from pydicom.pixels import apply_voi_lut

    tables = dataset.get("VOILUTSequence")
    if not tables or tables[0].LUTDescriptor[2] != 8:
        return apply_voi_lut(pixels, dataset)
    tables[0].LUTDescriptor[2] = 16
    return apply_voi_lut(pixels, dataset).astype(np.uint8)


def _to_8_bits(pixels: np.ndarray, stored: int = 8) -> np.ndarray:
    if pixels.dtype == np.uint8 and stored >= 8:
        return pixels
    return spread(pixels, *finite_range(pixels))


def raw_values(path: Path, frame: int | None = None) -> tuple[np.ndarray | None, bool]:
    """The values of a gray picture as they were measured, without any window, and whether large ones are
    dark; None for color."""
    from pydicom.pixels import apply_modality_lut

    with _naming(path):
        dataset = _read(path)
        pixels = _pixels(dataset, _check_declared(dataset, path, frame))
        if pixels.ndim == 3:
            return None, False
        values = apply_modality_lut(pixels, dataset)
        _check_varied(pixels, values, "its rescale slope and intercept make")
        return values, dataset.get("PhotometricInterpretation") == "MONOCHROME1"
