"""DICOM as hospitals write it: compressed, windowed, inverted, cut off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from protopfaith.data import read_image
from protopfaith.data.dicom import age_in_years, patient
from protopfaith.errors import ProtoPFaithError
from tests.data.dicom_files import SYNTAXES, write_dicom


@pytest.fixture
def gradient() -> np.ndarray:
    return np.add.outer(np.arange(32), 3 * np.arange(40)).astype(np.uint8)


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_every_transfer_syntax_gives_the_same_picture(
    tmp_path: Path, gradient: np.ndarray, syntax: str
) -> None:
    image = read_image(write_dicom(tmp_path / "a.dcm", gradient, syntax))
    assert image.mode == "L"
    tolerance = 4 if syntax == "jpeg" else 0
    assert np.abs(np.asarray(image).astype(int) - gradient).max() <= tolerance


def test_monochrome1_is_inverted(tmp_path: Path, gradient: np.ndarray) -> None:
    path = write_dicom(tmp_path / "a.dcm", gradient, PhotometricInterpretation="MONOCHROME1")
    assert np.array_equal(np.asarray(read_image(path)), 255 - gradient)


def test_16_bits_without_window_are_scaled_from_their_range(tmp_path: Path) -> None:
    values = np.array([[100, 1100], [600, 350]], np.uint16)
    image = np.asarray(read_image(write_dicom(tmp_path / "a.dcm", values)))
    assert image.tolist() == [[0, 255], [128, 64]]


def test_the_window_clips(tmp_path: Path) -> None:
    """Everything below the window is black, everything above white, its middle gray."""
    values = np.array([[0, 900, 1000, 1100, 4000]], np.uint16)
    path = write_dicom(
        tmp_path / "a.dcm", values, BitsStored=12, HighBit=11, WindowCenter=1000, WindowWidth=200
    )
    dark, low, middle, high, bright = np.asarray(read_image(path))[0].tolist()
    assert dark == low == 0
    assert abs(middle - 128) <= 1
    assert high == bright == 255


def test_slope_and_intercept_come_before_the_window(tmp_path: Path) -> None:
    values = np.array([[0, 500, 1000]], np.uint16)
    header = {"RescaleSlope": 2, "RescaleIntercept": -1000, "WindowCenter": 0, "WindowWidth": 1000}
    dark, middle, bright = np.asarray(read_image(write_dicom(tmp_path / "a.dcm", values, **header)))[
        0
    ].tolist()
    assert (dark, bright) == (0, 255)
    assert abs(middle - 128) <= 1


@pytest.mark.filterwarnings("ignore:End of file reached")
@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_truncated_file_is_named(tmp_path: Path, syntax: str, kept: float) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    path = write_dicom(tmp_path / "cut.dcm", noise, syntax)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(ProtoPFaithError, match=r"cut\.dcm cannot be read"):
        read_image(path)


def test_a_header_that_makes_all_pixels_the_same_is_refused(tmp_path: Path) -> None:
    values = np.array([[100, 1100], [600, 350]], np.uint16)
    window = write_dicom(tmp_path / "window.dcm", values, WindowCenter=60_000, WindowWidth=10)
    with pytest.raises(ProtoPFaithError, match=r"window\.dcm .*its window.* all of its pixels the same"):
        read_image(window)
    assert read_image(window, rescaled=True).size == (2, 2)
    slope = write_dicom(tmp_path / "slope.dcm", values, RescaleSlope="1e-300", RescaleIntercept="5")
    with pytest.raises(ProtoPFaithError, match=r"slope\.dcm .*slope and intercept.* all of its pixels"):
        read_image(slope)
    flat = write_dicom(tmp_path / "flat.dcm", np.full((2, 2), 7, np.uint16))
    assert read_image(flat).size == (2, 2)  # nothing was there to be lost


def test_a_dicom_file_by_the_name_of_a_picture_is_told(tmp_path: Path, gradient: np.ndarray) -> None:
    path = write_dicom(tmp_path / "a.dcm", gradient).rename(tmp_path / "a.png")
    with pytest.raises(ProtoPFaithError, match=r"rename it to end in \.dcm"):
        read_image(path)


def test_what_is_no_dicom_is_named(tmp_path: Path) -> None:
    (tmp_path / "note.dcm").write_text("not an image")
    with pytest.raises(ProtoPFaithError, match=r"note\.dcm cannot be read as a DICOM file"):
        read_image(tmp_path / "note.dcm")


def test_patients(tmp_path: Path, gradient: np.ndarray) -> None:
    path = write_dicom(tmp_path / "a.dcm", gradient, PatientID="p7", PatientAge="051Y", PatientSex="F")
    assert patient(path) == {"id": "p7", "age": 51, "sex": "F"}
    assert patient(write_dicom(tmp_path / "b.dcm", gradient)) == {"id": "b", "age": None, "sex": None}


@pytest.mark.parametrize(
    ("text", "years"), [("051Y", 51), ("58", 58), ("018M", 1), ("104W", 2), ("", None), ("x", None)]
)
def test_ages(text: str, years: int | None) -> None:
    assert age_in_years(text) == years
