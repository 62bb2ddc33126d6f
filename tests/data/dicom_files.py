"""Real DICOM files, written by pydicom."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from PIL import Image
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import (
    ExplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    RLELossless,
    SecondaryCaptureImageStorage,
    generate_uid,
)

SYNTAXES = {
    "plain": ExplicitVRLittleEndian,
    "jpeg": JPEGBaseline8Bit,
    "jpeg2000": JPEG2000Lossless,
    "rle": RLELossless,
}


def write_dicom(path: Path, pixels: np.ndarray, syntax: str = "plain", **header: Any) -> Path:
    """`pixels`: uint8 or uint16, H x W. `header` sets any DICOM attribute by keyword."""
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = SYNTAXES[syntax] if syntax == "jpeg" else ExplicitVRLittleEndian
    dataset = FileDataset(path, {}, file_meta=meta, preamble=b"\0" * 128)
    dataset.SOPClassUID = meta.MediaStorageSOPClassUID
    dataset.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    dataset.PatientID = path.stem
    dataset.Modality = "CR"
    dataset.Rows, dataset.Columns = pixels.shape
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = 8 * pixels.dtype.itemsize
    dataset.HighBit = dataset.BitsStored - 1
    dataset.PixelRepresentation = 0
    for keyword, value in header.items():
        setattr(dataset, keyword, value)
    if syntax == "jpeg":
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, format="JPEG", quality=95)
        dataset.PixelData = encapsulate([buffer.getvalue()])
        dataset["PixelData"].is_undefined_length = True
    else:
        dataset.PixelData = pixels.tobytes()
    if syntax in ("jpeg2000", "rle"):
        dataset.compress(SYNTAXES[syntax], pixels)
    pydicom.dcmwrite(path, dataset, enforce_file_format=True)
    return path
