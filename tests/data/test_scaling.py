"""The same values give the same picture, from DICOM or PNG."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data import Preprocessing, read_image
from protopfaith.data.scaling import Scaling
from protopfaith.errors import ProtoPFaithError
from tests.data.dicom_files import write_dicom

VALUES = (np.arange(20 * 30).reshape(20, 30) * 6).astype(np.uint16)  # 12 bits


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    Image.fromarray(VALUES).save(tmp_path / "a.png")
    return tmp_path / "a.png", write_dicom(tmp_path / "a.dcm", VALUES, WindowCenter=500, WindowWidth=100)


@pytest.mark.parametrize(
    "scaling", [Scaling(12), Scaling("range"), Scaling(window=(1000, 500)), Scaling("12")]
)
def test_either_format_gives_the_same_pixels(files: tuple[Path, Path], scaling: Scaling) -> None:
    one, other = (np.asarray(scaling.read(path)) for path in files)
    assert np.array_equal(one, other)
    assert one.max() - one.min() > 200


@pytest.mark.parametrize("kind", ["png", "tif"])
def test_the_camera_turns_measured_values_as_well(tmp_path: Path, kind: str) -> None:
    turned = Image.Exif()
    turned[0x112] = 6  # a quarter to the right
    Image.fromarray(VALUES).save(tmp_path / f"a.{kind}", exif=turned)
    Image.fromarray(np.ascontiguousarray(np.rot90(VALUES, -1))).save(tmp_path / "b.png")
    one, other = (np.asarray(Scaling(12).read(tmp_path / name)) for name in (f"a.{kind}", "b.png"))
    assert np.array_equal(one, other)


def test_only_the_scaling_that_is_used_is_told(
    files: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    Scaling(12).read(files[0])
    assert "65535" not in caplog.text
    Scaling().read(files[0])
    assert "65535" in caplog.text


def test_the_formula_is_that_of_bits_and_windows(files: tuple[Path, Path]) -> None:
    for scaling, low, high in (
        (Scaling(12), 0, 4095),
        (Scaling("range"), 0, VALUES.max()),
        (Scaling(window=(1000, 500)), 750, 1250),
        (Scaling(12, (1000, 500)), 750, 1250),
    ):
        expected = np.clip((VALUES.astype(float) - low) / (high - low), 0, 1) * 255
        assert np.abs(np.asarray(scaling.read(files[0])) - expected).max() <= 0.5 + 1e-9


def test_where_nothing_is_said_files_are_read_as_before(files: tuple[Path, Path], tmp_path: Path) -> None:
    Image.new("RGB", (5, 4), "red").save(tmp_path / "red.png")
    for path in (*files, tmp_path / "red.png"):
        assert np.array_equal(np.asarray(Scaling().read(path)), np.asarray(read_image(path)))
    assert Scaling(12).read(tmp_path / "red.png").mode == "RGB"  # 8 bits stay what they are


def test_dark_and_light_may_be_exchanged(tmp_path: Path) -> None:
    plain = write_dicom(tmp_path / "a.dcm", VALUES)
    inverted = write_dicom(tmp_path / "b.dcm", VALUES, PhotometricInterpretation="MONOCHROME1")
    one, other = (np.asarray(Scaling(12).read(path)) for path in (plain, inverted))
    assert np.array_equal(one, 255 - other)


def test_a_network_remembers_how_its_images_were_read(files: tuple[Path, Path]) -> None:
    preprocessing = Preprocessing((20, 30), 1, (0.5,), (0.5,), bits=12, window=(1000.0, 500.0))
    again = Preprocessing.from_dict(preprocessing.to_dict())
    assert again == preprocessing
    assert np.array_equal(np.asarray(again.read(files[0])), np.asarray(again.read(files[1])))
    old = {k: v for k, v in Preprocessing((20, 30)).to_dict().items() if k not in ("bits", "window")}
    assert Preprocessing.from_dict(old) == Preprocessing((20, 30))


@pytest.mark.parametrize("wrong", [{"bits": 0}, {"bits": "many"}, {"window": (1, 0)}, {"window": (1, 2, 3)}])
def test_what_means_nothing_is_one_sentence(wrong: dict) -> None:
    with pytest.raises(ProtoPFaithError, match=r"bits of pixel values|A window is"):
        Scaling(**wrong)
