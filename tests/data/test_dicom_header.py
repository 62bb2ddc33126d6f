"""What a header says of its pixels is applied as the standard says, also where pydicom alone would not."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydicom import dcmread
from pydicom.dataset import Dataset
from pydicom.uid import DeflatedExplicitVRLittleEndian

from protopfaith.data import read_image
from protopfaith.data.dicom_header import codestream_size, find_study
from protopfaith.errors import ProtoPFaithError
from tests.data.dicom_files import write_dicom

COLORS = ("Red", "Green", "Blue")


@pytest.mark.parametrize("entries", [255, 256, 4096])
@pytest.mark.parametrize("bits", [8, 16])
def test_a_palette_gives_its_colors(tmp_path: Path, entries: int, bits: int) -> None:
    """Pixels beyond the last entry have the color of the last one."""
    random = np.random.default_rng(entries)
    pixels = random.integers(0, 5000, (24, 30)).astype(np.uint16)
    tables = random.integers(0, 256, (3, entries)).astype(np.uint8)
    header = {}
    for color, table in zip(COLORS, tables, strict=True):
        data = (
            table.tobytes() + bytes(entries % 2) if bits == 8 else (table.astype(np.uint16) * 257).tobytes()
        )
        header[f"{color}PaletteColorLookupTableDescriptor"] = [entries, 0, bits]
        header[f"{color}PaletteColorLookupTableData"] = data
    path = write_dicom(tmp_path / "a.dcm", pixels, PhotometricInterpretation="PALETTE COLOR", **header)
    expected = tables.T[np.minimum(pixels, entries - 1)]
    assert np.array_equal(np.asarray(read_image(path)), expected)


def test_a_window_table_of_8_bits_has_more_than_256_entries(tmp_path: Path) -> None:
    pixels = np.arange(4096, dtype=np.uint16).reshape(64, 64)
    table = Dataset()
    table.LUTDescriptor = [4000, 50, 8]
    table.LUTData = (np.arange(4000) // 16).astype(np.uint16).tobytes()
    table["LUTDescriptor"].VR, table["LUTData"].VR = "US", "OW"
    path = write_dicom(tmp_path / "a.dcm", pixels, VOILUTSequence=[table])
    assert np.array_equal(np.asarray(read_image(path)), np.clip(pixels.astype(int) - 50, 0, 3999) // 16)


def test_a_slope_without_intercept_comes_before_the_window(tmp_path: Path) -> None:
    pixels = np.arange(1000, dtype=np.uint16).reshape(20, 50)
    window = {"WindowCenter": 1000, "WindowWidth": 400}
    half = write_dicom(tmp_path / "half.dcm", pixels, RescaleSlope=2, **window)
    whole = write_dicom(tmp_path / "whole.dcm", pixels, RescaleSlope=2, RescaleIntercept=0, **window)
    assert np.array_equal(np.asarray(read_image(half)), np.asarray(read_image(whole)))


def test_less_than_8_bits_are_scaled(tmp_path: Path) -> None:
    pixels = np.array([[0, 15], [5, 10]], np.uint8)
    image = read_image(write_dicom(tmp_path / "a.dcm", pixels, BitsStored=4, HighBit=3))
    assert np.asarray(image).tolist() == [[0, 255], [85, 170]]


@pytest.mark.parametrize("kind", ["jpeg", "jpeg2000"])
def test_the_size_of_a_compressed_picture(kind: str) -> None:
    file = io.BytesIO()
    Image.new("RGB", (41, 30)).save(file, kind)
    assert codestream_size(file.getvalue()) == (30, 41)
    assert codestream_size(file.getvalue()[:10]) in (None, (0, 0))
    assert codestream_size(b"") is None


def test_a_file_that_does_not_say_how_its_pixels_are_stored_is_one_sentence(tmp_path: Path) -> None:
    path = write_dicom(tmp_path / "x.dcm", np.arange(64, dtype=np.uint8).reshape(8, 8))
    content, known = path.read_bytes(), b"1.2.840.10008.1.2.1\0"
    assert content.count(known) == 1
    path.write_bytes(content.replace(known, bytes(len(known))))
    with pytest.raises(ProtoPFaithError, match="transfer syntax is empty"):
        read_image(path)


STUDY = {"StudyInstanceUID": "1.2.3", "SeriesInstanceUID": "1.2.3.4"}


def test_a_damaged_deflated_file_is_a_dicom_file_all_the_same(tmp_path: Path) -> None:
    path = write_dicom(tmp_path / "x.dcm", np.arange(64, dtype=np.uint8).reshape(8, 8), **STUDY)
    dataset = dcmread(path)
    dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    dataset.save_as(path)
    assert find_study(path).StudyInstanceUID
    content = bytearray(path.read_bytes())
    content[-200:] = b"\xff" * 200
    path.write_bytes(content)
    with pytest.raises(ProtoPFaithError, match=r"The DICOM file x\.dcm cannot be read \(its content is dam"):
        find_study(path)
    (tmp_path / "y.dcm").write_bytes(b"no image")
    with pytest.raises(ProtoPFaithError, match=r"y\.dcm is no DICOM file"):
        find_study(tmp_path / "y.dcm")
