from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PIL import Image

from protopfaith.explanation import Bulk, explain_bulk
from protopfaith.explanation.bulk.thumbnails import thumbnails
from protopfaith.training import Run
from tests.explanation.bulk.conftest import QUICK


@pytest.fixture
def wide(run: Run, pictures: Path, tmp_path: Path) -> Bulk:
    """An image that is wider than high, and two others."""
    (tmp_path / "images").mkdir()
    Image.new("L", (80, 40), 200).save(tmp_path / "images" / "wide.png")
    for number in (1, 3):
        shutil.copy(pictures / "ward1" / f"{number}.png", tmp_path / "images")
    return explain_bulk(run, [tmp_path / "images"], tmp_path / "out", **QUICK)


def test_pictures_are_small_and_keep_their_shape(wide: Bulk) -> None:
    found = thumbnails(wide, ["wide.png", "1.png", "wide.png", "unknown.png"], 32)
    assert {name: image.size for name, image in found.items()} == {"wide.png": (32, 16), "1.png": (32, 32)}
    assert found["wide.png"].getpixel((5, 5)) == (200, 200, 200)


def test_what_cannot_be_read_anymore_is_left_out(wide: Bulk) -> None:
    folder = wide.folder.parent / "images"
    (folder / "1.png").write_bytes(b"no image")
    (folder / "3.png").unlink()
    assert list(thumbnails(wide, ["1.png", "wide.png", "3.png"], 32)) == ["wide.png"]
    (wide.folder / "_where.parquet").write_bytes(b"PAR1")
    assert thumbnails(wide, ["wide.png"], 32) == {}


def test_a_file_that_has_changed_has_no_picture(wide: Bulk) -> None:
    Image.new("L", (80, 40), 100).save(wide.folder.parent / "images" / "wide.png")
    assert list(thumbnails(wide, ["1.png", "wide.png"], 32)) == ["1.png"]


def test_images_in_a_tar_have_pictures_and_need_no_run(run: Run, tar: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(run.folder, tmp_path / "run")
    bulk = explain_bulk(Run(moved), [tar], tmp_path / "out", anonymous=True, **QUICK)
    shutil.rmtree(moved)
    found = thumbnails(bulk, ["image-0001", "image-0004"], 20)
    assert {name: image.size for name, image in found.items()} == {
        "image-0001": (20, 20),
        "image-0004": (20, 20),
    }
