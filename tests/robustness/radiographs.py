"""DICOM files whose header is broken, contradicts the pixels, or is merely unusual."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from PIL import Image
from pydicom import config
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate

from tests.data.dicom_files import write_dicom
from tests.robustness.harness import Case, Place

PIXELS = np.add.outer(20 * np.arange(24), 20 * np.arange(30)).astype(np.uint16)
NARROW = PIXELS.astype(np.uint8)
INSTEAD = ("x.dcm", "replace it, remove it")


def written(place: Place, pixels: np.ndarray = PIXELS, **header: Any) -> Any:
    """A file that says what it likes, unchecked by what writes it."""
    mode = config.settings.writing_validation_mode
    config.settings.writing_validation_mode = config.IGNORE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return write_dicom(place / "x.dcm", pixels, **header)
    finally:
        config.settings.writing_validation_mode = mode


def read(what: str, pixels: np.ndarray = PIXELS, says: tuple[str, ...] = (), **header: Any) -> Case:
    def call(place: Place) -> None:
        from protopfaith.data import read_image

        read_image(written(place, pixels, **header))

    return Case(f"read a DICOM file with {what}", call=call, says=says or INSTEAD)


def fine(what: str, pixels: np.ndarray = PIXELS, **header: Any) -> Case:
    return Case(**{**vars(read(what, pixels, **header)), "says": (), "good": True})


def compressed(place: Place, content: bytes) -> Any:
    """A JPEG file inside that is something else."""
    path = write_dicom(place / "x.dcm", NARROW, "jpeg")
    from pydicom import dcmread, dcmwrite

    dataset = dcmread(path)
    dataset.PixelData = encapsulate([content])
    dcmwrite(path, dataset)
    return path


def jpeg(width: int, height: int, mode: str = "L") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (width, height), 77).save(buffer, "jpeg")
    return buffer.getvalue()


def inside(what: str, content: bytes, *says: str) -> Case:
    def call(place: Place) -> None:
        from protopfaith.data import read_image

        read_image(compressed(place, content))

    return Case(f"read a DICOM file with {what} inside", call=call, says=("x.dcm", *says))


HUGE = jpeg(30, 24).replace(bytes([0, 24, 0, 30]), bytes([0xFD, 0xE8, 0xFD, 0xE8]))  # 65,000 x 65,000


def predict(what: str, **header: Any) -> Case:
    return Case(
        f"predict on a DICOM file with {what}",
        lambda p: ["predict", p.run, written(p, **header)],
        says=INSTEAD,
    )


CASES = [
    predict("a window of no width", WindowCenter=5, WindowWidth=0),
    predict("a slope that is no number", RescaleSlope="nan", RescaleIntercept=0),
    read("a slope without end", RescaleSlope="inf", RescaleIntercept=0, says=("x.dcm", "rescale slope is inf")),
    read("a slope of 0", RescaleSlope=0, RescaleIntercept=5, says=("x.dcm", "rescale slope is 0")),
    read("a slope beyond numbers", RescaleSlope="1e308", RescaleIntercept=0, says=("x.dcm", "lead to no numbers")),
    read("a window at no number", WindowCenter="nan", WindowWidth="10", says=("x.dcm", "window center is nan")),
    read("a window without end", WindowCenter="5", WindowWidth="inf", says=("x.dcm", "window width is inf")),
    read("minus three frames", NumberOfFrames=-3, says=("x.dcm", "number of frames")),
    read("a window of negative width", WindowCenter=5, WindowWidth=-1),
    read("a window of an unknown kind", WindowCenter=5, WindowWidth=9, VOILUTFunction="CUBIC"),
    read("a table of windows without entries", VOILUTSequence=[Dataset()], says=("x.dcm", "has no table")),
    read("a table of values without entries", ModalityLUTSequence=[Dataset()], says=("x.dcm", "has no table")),
    read("a palette that is missing", NARROW, PhotometricInterpretation="PALETTE COLOR"),
    read("gray pixels that are called RGB", PhotometricInterpretation="RGB", says=("x.dcm", "'RGB'", "neither gray")),
    read("pixels of no known color", PhotometricInterpretation="HSV", says=("x.dcm", "'HSV'")),
    read("pixels of two samples", SamplesPerPixel=2),
    read("three samples that are called gray", SamplesPerPixel=3, PlanarConfiguration=0),
    *(read(f"{bits} bits a pixel", BitsAllocated=bits) for bits in (0, 3, 12, 24, 128)),
    read("more bits stored than there are", BitsStored=17, HighBit=16),
    read("pixels that are cut", Rows=25),
    read("no rows", Rows=0),
    read("65,535 x 65,535 pixels", Rows=65535, Columns=65535, says=("x.dcm", "PROTOPFAITH_MAX_PIXELS")),
    *(read(f"{frames:,} frames", NumberOfFrames=frames, says=("x.dcm", "frames")) for frames in (-1, 3, 2**31 - 1)),
    inside("a JPEG of another size", jpeg(60, 48), "48 rows of 60"),
    inside("a JPEG of 65,000 x 65,000", HUGE, "PROTOPFAITH_MAX_PIXELS"),
    inside("a JPEG in color, called gray,", jpeg(30, 24, "RGB")),
    inside("a text", b"nonsense" * 20),
    inside("PostScript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 30 24\n"),
]  # fmt: skip

GOOD = [
    fine("an empty slope", RescaleSlope=None, RescaleIntercept=None),
    fine("an empty window", WindowCenter=None, WindowWidth=None),
    fine("a center without a width", WindowCenter=100),
    fine("more centers than widths", WindowCenter=[300, 100], WindowWidth=[200]),
    fine("an empty list of tables", VOILUTSequence=[], ModalityLUTSequence=[]),
    fine("an unknown character set", SpecificCharacterSet="ISO_IR 9999"),
    fine("no patient", PatientID=None),
]
