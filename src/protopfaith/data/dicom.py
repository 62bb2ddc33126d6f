"""One DICOM file as an 8-bit picture, the way a radiologist's screen would show it."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from protopfaith.data.frames import check_frame
from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import check_pixels, limit

DEFLATED = "1.2.840.10008.1.2.1.99"


def read_dicom(path: Path, frame: int | None = None) -> Image.Image:
    """Decodes any transfer syntax pydicom has a decoder for, applies the modality and window (or lookup
    table), and inverts MONOCHROME1. Values that are not 8 bits afterwards are scaled from their range to
    0..255. Of a file with several frames one must be chosen, from 1."""
    dataset = _read(path)
    try:
        place = _check_declared(dataset, path, frame)
        return _to_image(dataset, place)
    except ProtoPFaithError:
        raise
    # Decoders of broken pixel data raise anything; the message has to name the file.
    except Exception as error:
        message = " ".join(str(error).split()).rstrip(".")[:200]
        raise ProtoPFaithError(
            f"The pixels of the DICOM file {path} cannot be read ({message}); replace it, remove it, or ask "
            "for unreadable images to be skipped."
        ) from error


def count_dicom_frames(path: Path) -> int:
    """How many pictures the header says there are."""
    return _frames(_read(path, header_only=True), path)


def _frames(dataset: Any, path: Path) -> int:
    try:
        return int(dataset.get("NumberOfFrames") or 1)
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
        message = " ".join(str(error).split()).rstrip(".")[:200]
        raise ProtoPFaithError(
            f"{path} cannot be read as a DICOM file ({message}); replace it, remove it, or ask for "
            "unreadable images to be skipped."
        ) from error


def _check_declared(dataset: Any, path: Path, frame: int | None = None) -> int | None:
    """Raises if the header says more pixels than an image may have, or has no such frame. The frame's place
    in a file of several, from 0; None for a single picture."""
    rows, columns = int(dataset.get("Rows") or 0), int(dataset.get("Columns") or 0)
    if rows < 1 or columns < 1:
        raise ValueError("it has no pixels")
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

    if place is None:
        return dataset.pixel_array
    groups = [dataset.get("SharedFunctionalGroupsSequence"), dataset.get("PerFrameFunctionalGroupsSequence")]
    for group, at in zip(groups, (0, place), strict=True):
        if group is None or at >= len(group):
            continue
        for name in ("PixelValueTransformationSequence", "FrameVOILUTSequence"):
            for found in group[at].get(name) or ():
                dataset.update(found)
    return pixel_array(dataset, index=place)


def _to_image(dataset: Any, place: int | None = None) -> Image.Image:
    from pydicom.pixels import apply_modality_lut, apply_voi_lut

    pixels = _pixels(dataset, place)
    if dataset.get("SamplesPerPixel", 1) == 3:
        return Image.fromarray(_to_8_bits(pixels))
    if pixels.ndim != 2:
        raise ValueError(f"one frame is expected, not an array of shape {pixels.shape}")
    has_window = "WindowWidth" in dataset or "VOILUTSequence" in dataset
    pixels = apply_modality_lut(pixels, dataset)
    if has_window:
        pixels = apply_voi_lut(pixels, dataset)
    gray = _to_8_bits(pixels)
    if dataset.get("PhotometricInterpretation") == "MONOCHROME1":
        gray = 255 - gray
    return Image.fromarray(gray)


def _to_8_bits(pixels: np.ndarray) -> np.ndarray:
    if pixels.dtype == np.uint8:
        return pixels
    low, high = float(np.nanmin(pixels)), float(np.nanmax(pixels))
    result = np.empty(pixels.shape, np.uint8)
    for start in range(0, len(pixels), 256):  # in strips: as float64 the whole takes many times its size
        strip = (pixels[start : start + 256].astype(np.float64) - low) * (255 / max(high - low, 1e-12))
        result[start : start + 256] = np.rint(np.nan_to_num(strip))
    return result


def raw_values(path: Path, frame: int | None = None) -> tuple[np.ndarray | None, bool]:
    """The values of a gray picture as they were measured, without any window, and whether large ones are
    dark; None for color."""
    from pydicom.pixels import apply_modality_lut

    dataset = _read(path)
    place = _check_declared(dataset, path, frame)
    if dataset.get("SamplesPerPixel", 1) == 3:
        return None, False
    inverted = dataset.get("PhotometricInterpretation") == "MONOCHROME1"
    pixels = _pixels(dataset, place)
    return apply_modality_lut(pixels, dataset), inverted
