"""Uploads: decoded as everywhere else, by content, and gone afterwards."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.uploads import PREFIX, PrivateFolder, shown_name
from tests.data.dicom_files import write_dicom

PREPROCESSING = Preprocessing((48, 48))


def encoded(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP", "BMP"])
def test_formats_are_told_by_their_content(kind: str) -> None:
    with PrivateFolder() as folder:
        found = folder.decode(encoded(Image.new("RGB", (20, 10)), kind), "a name.txt", PREPROCESSING)
        assert found.size == (20, 10)
        assert list(folder.path.iterdir()) == []
    assert not folder.path.exists()


def test_16_bits_are_read_as_elsewhere(tmp_path: Path) -> None:
    values = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
    path = tmp_path / "deep.png"
    Image.fromarray(values).save(path)
    with PrivateFolder() as folder:
        found = folder.decode(path.read_bytes(), "deep.png", PREPROCESSING)
    assert np.array_equal(np.array(found), np.array(PREPROCESSING.read(path)))


def test_what_is_no_image_is_one_sentence_without_our_paths() -> None:
    with PrivateFolder() as folder:
        for content in (b"", b"nothing", encoded(Image.new("L", (9, 9)), "PNG")[:40]):
            with pytest.raises(ProtoPFaithError) as caught:
                folder.decode(content, "scan.png", PREPROCESSING)
            assert str(folder.path) not in str(caught.value)
        with pytest.raises(ProtoPFaithError, match=r"scan\.dcm"):
            folder.decode(b"x" * 200, "scan.dcm", PREPROCESSING)
        assert list(folder.path.iterdir()) == []


def test_folders_of_killed_servers_go_when_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"], text=True)
    deserted = tmp_path / f"{PREFIX}{killed.strip()}-abc"
    running, foreign = tmp_path / f"{PREFIX}{os.getppid()}-abc", tmp_path / "protopfaith-notes"
    for folder in (deserted, running, foreign):
        folder.mkdir()
        (folder / "scan.image").write_bytes(b"a radiograph")
    with PrivateFolder() as mine, PrivateFolder(keep=True) as kept:
        assert mine.path.exists()
        assert not deserted.exists()
        assert running.exists()
        assert foreign.exists()
    assert not mine.path.exists()
    assert kept.path.exists()


def test_nobody_else_can_read_what_is_kept() -> None:
    folder = PrivateFolder(keep=True)
    with folder:
        folder.decode(encoded(Image.new("L", (9, 9)), "PNG"), "a.png", PREPROCESSING)
    kept = list(folder.path.iterdir())
    assert len(kept) == 1
    assert folder.path.stat().st_mode & 0o077 == 0
    assert kept[0].stat().st_mode & 0o077 == 0
    kept[0].unlink()
    folder.path.rmdir()


@pytest.mark.parametrize("name", ["../../x.png", "C:\\a\\x.png", "x.png\r\nSet-Cookie: a", "", "\x00\x01"])
def test_names_are_for_people_alone(name: str) -> None:
    shown = shown_name(name)
    assert shown
    assert shown.isprintable()
    assert "/" not in shown
    assert "\\" not in shown


def test_dicom_is_told_by_its_content_and_read_through_its_window(tmp_path: Path) -> None:
    pytest.importorskip("pydicom")
    path = write_dicom(tmp_path / "scan.dcm", np.arange(64, dtype=np.uint16).reshape(8, 8) * 60)
    with PrivateFolder() as folder:
        found = folder.decode(path.read_bytes(), "no ending", PREPROCESSING)
    assert np.array_equal(np.array(found), np.array(PREPROCESSING.read(path)))
