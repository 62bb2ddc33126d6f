"""Frames of DICOM files and pages of TIFF files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence as DicomSequence

from protopfaith.data import Preprocessing, read_image
from protopfaith.data.frames import count_frames, parse_frame, split_frame, with_frames
from protopfaith.data.scaling import Scaling
from protopfaith.errors import ProtoPFaithError
from tests.data.dicom_files import write_dicom

FRAMES = np.stack([np.full((10, 12), value, np.uint8) for value in (10, 120, 250)])


def several(path: Path, pixels: np.ndarray = FRAMES, syntax: str = "plain", **header: object) -> Path:
    """A DICOM file of several frames."""
    write_dicom(path, pixels[0])
    import pydicom

    dataset = pydicom.dcmread(path)
    dataset.NumberOfFrames = len(pixels)
    dataset.PixelData = pixels.tobytes()
    if pixels.dtype == np.uint16:
        dataset.BitsAllocated = dataset.BitsStored = 16
        dataset.HighBit = 15
    for name, value in header.items():
        setattr(dataset, name, value)
    if syntax == "rle":
        from pydicom.uid import RLELossless

        dataset.compress(RLELossless, pixels)
    pydicom.dcmwrite(path, dataset, enforce_file_format=True)
    return path


def pages(path: Path) -> Path:
    first, *others = [Image.fromarray(frame) for frame in FRAMES]
    first.save(path, save_all=True, append_images=others)
    return path


@pytest.fixture(params=["plain", "rle", "tif"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "tif":
        return pages(tmp_path / "scan.tif")
    return several(tmp_path / "scan.dcm", syntax=request.param)


def test_every_frame_is_read(file: Path) -> None:
    assert count_frames(file) == 3
    for number, value in enumerate((10, 120, 250), start=1):
        pixels = np.asarray(read_image(f"{file}#{number}"))
        assert pixels.shape == (10, 12)
        assert set(pixels.flat) == {value}
        assert Preprocessing((4, 4), 1, (0.0,), (1.0,)).read(f"{file}#{number}").size == (12, 10)


@pytest.mark.parametrize("number", [0, 4, 999_999_999])
def test_other_frames_are_one_sentence(file: Path, number: int) -> None:
    with pytest.raises(ProtoPFaithError, match=f"no frame {number}; give one from 1 to 3"):
        read_image(f"{file}#{number}")


def test_all_frames_are_listed(file: Path) -> None:
    assert [path.name for path in with_frames([file], "all")] == [f"{file.name}#{n}" for n in (1, 2, 3)]
    assert with_frames([file], "2") == [Path(f"{file}#2")]
    assert with_frames([file], None) == [file]
    with pytest.raises(ProtoPFaithError, match="names a frame already"):
        with_frames([Path(f"{file}#2")], "all")


def test_single_pictures_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    Image.new("RGB", (4, 4)).save(path)
    assert with_frames([path], "all") == with_frames([path], 1) == [path]
    (second,) = with_frames([path], 2)
    with pytest.raises(ProtoPFaithError, match="single picture"):
        read_image(second)
    broken = tmp_path / "broken.tif"
    broken.write_bytes(b"no image")
    assert with_frames([broken], "all") == [broken]


def test_a_file_may_be_named_like_a_frame(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    assert split_frame(tmp_path / "a.png#7") == (tmp_path / "a.png", 7)
    (tmp_path / "a.png").rename(tmp_path / "a.png#7")
    assert split_frame(tmp_path / "a.png#7") == (tmp_path / "a.png#7", None)
    assert split_frame(tmp_path / "none.png#7") == (tmp_path / "none.png#7", None)


def test_a_dicom_file_of_several_frames_needs_one(tmp_path: Path) -> None:
    path = several(tmp_path / "scan.dcm")
    with pytest.raises(ProtoPFaithError, match=r"holds 3 frames; give one of them as scan.dcm#1"):
        read_image(path)


def test_a_frame_has_a_window_of_its_own(tmp_path: Path) -> None:
    pixels = np.stack([np.linspace(0, 4000, 120).reshape(10, 12).astype(np.uint16)] * 2)

    def window(center: float, width: float) -> Dataset:
        inner, outer = Dataset(), Dataset()
        inner.WindowCenter, inner.WindowWidth = center, width
        outer.FrameVOILUTSequence = DicomSequence([inner])
        return outer

    groups = DicomSequence([window(1000, 100), window(3500, 100)])
    path = several(tmp_path / "scan.dcm", pixels, PerFrameFunctionalGroupsSequence=groups)
    first, second = (np.asarray(read_image(f"{path}#{number}")) for number in (1, 2))
    assert (first > 128).sum() > (second > 128).sum() > 0


def test_scaling_takes_the_frame(tmp_path: Path) -> None:
    pixels = np.stack([np.full((10, 12), value, np.uint16) for value in (1000, 4095)])
    path = several(tmp_path / "scan.dcm", pixels)
    assert set(np.asarray(Scaling(bits=12).read(f"{path}#2")).flat) == {255}
    assert set(np.asarray(Scaling(bits=12).read(f"{path}#1")).flat) == {62}
    images = [Image.fromarray(frame) for frame in pixels]
    images[0].save(tmp_path / "scan.tif", save_all=True, append_images=images[1:])
    assert set(np.asarray(Scaling(bits=12).read(tmp_path / "scan.tif#2")).flat) == {255}


@pytest.mark.parametrize("text", ["0", "-1", "x", "", "1.5", "²", "1" * 30])
def test_frames_are_numbers_from_one(text: str) -> None:
    with pytest.raises(ProtoPFaithError, match="A frame is a number from 1"):
        parse_frame(text)
