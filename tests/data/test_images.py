"""Any image file becomes plain RGB or grayscale, or one clear sentence."""

from __future__ import annotations

import logging
import struct
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data import images as images_module
from protopfaith.data import read_image
from protopfaith.data.images import LISTS, to_rgb_or_gray
from protopfaith.errors import ProtoPFaithError


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_plain_images_stay_as_they_are(
    tmp_path: Path, picture: Callable[..., Image.Image], mode: str
) -> None:
    image = picture(0, mode=mode)
    image.save(tmp_path / "a.png")
    assert np.array_equal(np.asarray(read_image(tmp_path / "a.png")), np.asarray(image))


def test_webp_under_a_jpg_name_is_read_by_content(
    tmp_path: Path, picture: Callable[..., Image.Image]
) -> None:
    picture(0).save(tmp_path / "a.jpg", format="WEBP")
    assert read_image(tmp_path / "a.jpg").mode == "RGB"


def test_transparency_is_laid_on_white_and_said_once(
    tmp_path: Path, picture: Callable[..., Image.Image], caplog: pytest.LogCaptureFixture
) -> None:
    image = picture(0, (4, 4)).convert("RGBA")
    image.putalpha(Image.fromarray(np.array([[0, 255, 0, 255]] * 4, np.uint8)))
    image.save(tmp_path / "a.png")
    with caplog.at_level(logging.WARNING, logger="protopfaith"):
        flat = np.asarray(read_image(tmp_path / "a.png"))
        read_image(tmp_path / "a.png")
    assert (flat[:, 0] == 255).all()
    assert np.array_equal(flat[:, 1], np.asarray(image)[:, 1, :3])
    assert [record.message for record in caplog.records] == [
        "Images with an alpha channel are laid on a white background."
    ]


@pytest.mark.parametrize("mode", ["L", "RGB", "I;16"])
def test_a_color_that_a_file_names_as_transparent_is_laid_on_white(tmp_path: Path, mode: str) -> None:
    """As programs that make PNG files smaller write pictures whose alpha channel is all or nothing."""
    values = np.array([[10, 20], [30, 10]], np.uint16 if mode == "I;16" else np.uint8)
    values = values * 257 if mode == "I;16" else values
    pixels = np.stack([values] * 3, 2) if mode == "RGB" else values
    key = (10, 10, 10) if mode == "RGB" else int(values[0, 0])
    Image.fromarray(pixels).save(tmp_path / "a.png", transparency=key)
    found = np.asarray(read_image(tmp_path / "a.png").convert("L"))
    assert found.tolist() == [[255, 20], [30, 255]]


def test_colors_beyond_a_palette_are_told_and_a_missing_one_is_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    image = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "P")
    image.putpalette([9, 9, 9, 8, 8, 8, 7, 7, 7])
    image.save(tmp_path / "whole.png")
    assert np.asarray(read_image(tmp_path / "whole.png"))[0, :, 0].tolist() == [9, 8, 7]
    assert "does not have" not in caplog.text
    whole = (tmp_path / "whole.png").read_bytes()
    at = whole.index(b"PLTE")
    (tmp_path / "none.png").write_bytes(whole[: at - 4] + whole[at + 4 + 9 + 4 :])
    with pytest.raises(ProtoPFaithError, match=r"none\.png cannot be read \(its palette is missing\)"):
        read_image(tmp_path / "none.png")
    colors = b"PLTE" + bytes(6)
    short = struct.pack(">I", 6) + colors + struct.pack(">I", zlib.crc32(colors))
    (tmp_path / "short.png").write_bytes(whole[: at - 4] + short + whole[at + 4 + 9 + 4 :])
    read_image(tmp_path / "short.png")
    assert "a palette does not have" in caplog.text.replace("an image's palette", "a palette")


def test_the_limit_of_pixels_can_be_raised_beyond_that_of_pillow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("L", (50, 50)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    monkeypatch.setenv("PROTOPFAITH_MAX_PIXELS", "900")
    with pytest.raises(ProtoPFaithError, match=r"a\.png has more than 900 pixels.*PROTOPFAITH_MAX_PIXELS"):
        read_image(tmp_path / "a.png")
    assert Image.MAX_IMAGE_PIXELS == 1000
    monkeypatch.setenv("PROTOPFAITH_MAX_PIXELS", "2500")
    assert read_image(tmp_path / "a.png").size == (50, 50)


def test_many_threads_say_it_once(caplog: pytest.LogCaptureFixture) -> None:
    """Images are decoded by several threads; a slow log gives each of them time to speak."""
    slow = logging.Handler()
    slow.emit = lambda record: time.sleep(0.05)  # type: ignore[method-assign]
    logging.getLogger("protopfaith").addHandler(slow)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(to_rgb_or_gray, [Image.new("P", (2, 2)) for _ in range(4)]))
    finally:
        logging.getLogger("protopfaith").removeHandler(slow)
    assert len(caplog.records) == 1


def test_16_bits_are_scaled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    values = np.array([[0, 257, 65535, 32896]], np.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    assert image.mode == "L"
    assert np.asarray(image).tolist() == [[0, 1, 255, 128]]
    assert "16 bits" in caplog.text


@pytest.mark.parametrize("scale", [1.0, 255.0, 1e6])
def test_floating_point_images_are_scaled_from_their_own_range(
    tmp_path: Path, scale: float, caplog: pytest.LogCaptureFixture
) -> None:
    values = scale * np.array([[-1.0, 0.0, 0.5, 1.0], [np.nan, np.inf, -np.inf, 0.5]], np.float32)
    Image.fromarray(values).save(tmp_path / "a.tiff")
    image = read_image(tmp_path / "a.tiff")
    assert image.mode == "L"
    assert np.asarray(image).tolist() == [[0, 128, 191, 255], [0, 255, 0, 191]]
    assert "floating-point" in caplog.text
    assert "own range" in caplog.text
    assert "65535" not in caplog.text


def test_images_of_one_value_and_of_none(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 2), 7.5, np.float32)).save(tmp_path / "flat.tiff")
    assert np.asarray(read_image(tmp_path / "flat.tiff")).tolist() == [[0, 0], [0, 0]]
    Image.fromarray(np.full((2, 2), np.nan, np.float32)).save(tmp_path / "none.tiff")
    with pytest.raises(ProtoPFaithError, match=r"none\.tiff cannot be read \(none of its pixels is a number"):
        read_image(tmp_path / "none.tiff")


def test_32_bits_that_are_more_than_16(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Image.fromarray(np.array([[0, 1 << 20, 1 << 21]], np.int32)).save(tmp_path / "a.tiff")
    assert np.asarray(read_image(tmp_path / "a.tiff")).tolist() == [[0, 128, 255]]
    assert "own range" in caplog.text


@pytest.mark.parametrize(
    ("mode", "suffix", "result"),
    [("P", "png", "RGB"), ("1", "png", "L"), ("LA", "png", "L"), ("CMYK", "jpg", "RGB")],
)
def test_other_modes(
    tmp_path: Path, picture: Callable[..., Image.Image], mode: str, suffix: str, result: str
) -> None:
    picture(0).convert("L" if mode == "LA" else "RGB").convert(mode).save(tmp_path / f"a.{suffix}")
    assert read_image(tmp_path / f"a.{suffix}").mode == result


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_a_truncated_file_is_named(tmp_path: Path, picture: Callable[..., Image.Image], suffix: str) -> None:
    path = tmp_path / f"broken.{suffix}"
    picture(0, (64, 64)).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ProtoPFaithError, match=rf"broken\.{suffix} cannot be read"):
        read_image(path)


@pytest.mark.parametrize("content", [b"", b"not an image"])
def test_what_is_no_image_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "note.jpg").write_bytes(content)
    with pytest.raises(ProtoPFaithError, match=r"note\.jpg cannot be read"):
        read_image(tmp_path / "note.jpg")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match=r"There is no image at .*nothing\.png"):
        read_image(tmp_path / "nothing.png")


def test_pixels_that_are_no_numbers_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    values[0, 5] = np.nan
    Image.fromarray(values).save(tmp_path / "holes.tif")
    images_module._said.clear()
    assert read_image(tmp_path / "holes.tif").getpixel((5, 0)) == 0
    assert "NaN" in caplog.text


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "nothing.png").touch()
    with pytest.raises(ProtoPFaithError, match="it is empty"):
        read_image(tmp_path / "nothing.png")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["png", "tif"])
def test_gray_pictures_are_turned_as_the_camera_was_held(tmp_path: Path, kind: str, orientation: int) -> None:
    pixels = np.arange(6 * 9, dtype=np.uint8).reshape(6, 9)
    held = Image.Exif()
    held[0x112] = orientation
    Image.fromarray(pixels).save(tmp_path / f"a.{kind}", exif=held)
    turned = pixels.T if orientation >= 5 else pixels
    turned = turned[::-1] if orientation in (3, 4, 7, 8) else turned
    turned = turned[:, ::-1] if orientation in (2, 3, 6, 7) else turned
    assert np.array_equal(np.asarray(read_image(tmp_path / f"a.{kind}")), turned)


def test_a_folder_is_no_image_whatever_it_holds(tmp_path: Path, picture: Callable[..., Image.Image]) -> None:
    picture(0).save(tmp_path / "a.png")
    with pytest.raises(ProtoPFaithError, match="is a folder, where an image is expected"):
        read_image(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProtoPFaithError, match="holds no images"):
        read_image(tmp_path / "empty")


@pytest.mark.parametrize("suffix", LISTS)
def test_a_list_is_no_image(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"mine{suffix}").write_text("file\na.png\n")
    with pytest.raises(ProtoPFaithError, match=r"mine\.\w+ is a list, not an image; .* --bulk"):
        read_image(tmp_path / f"mine{suffix}")
