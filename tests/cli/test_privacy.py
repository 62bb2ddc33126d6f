"""`--anonymous` from end to end: nothing in the results, or on the terminal, tells whose images they are."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Done, protopfaith
from tests.data.dicom_files import write_dicom

NAME, PATIENT = "Jane_Doe_1970", "Doe^Jane"


@pytest.fixture
def secret(place: Path, tmp_path: Path) -> Path:
    """Images whose names and tags tell who they show; two of them are broken."""
    folder = tmp_path / f"ward_of_{NAME}"
    folder.mkdir()
    shutil.copy(place / "images" / "red" / "0.png", folder / f"{NAME}.png")
    pixels = np.arange(900, dtype=np.uint8).reshape(30, 30)
    write_dicom(folder / f"{NAME}.dcm", pixels, PatientName=PATIENT, PatientID=PATIENT)
    (folder / f"{NAME}_broken.png").write_bytes(b"no image")
    (folder / f"{NAME}_broken.dcm").write_bytes(b"no image")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Names and bytes of all files, of archives inflated."""
    found: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        found[name] = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                found |= {f"{name}/{one}": archive.read(one) for one in archive.namelist()}
    return found


def explained(place: Path, run: Path, secret: Path, out: Path, *more: str) -> Done:
    plan = ["--players", "12", "--budget", "64", "--anonymous", "--out", str(out)]
    return protopfaith(place, "explain", str(run), str(secret), *plan, *more)


def test_nobody_is_named(place: Path, run: Path, secret: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = explained(place, run, secret, out, "--precision", "0.0001")
    assert done.returncode == 1
    assert done.stderr.count("Failed: image-000") == 2
    words = [NAME, PATIENT, str(secret), str(tmp_path), str(place), "images/red", "red/"]
    for name, content in contents(out).items():
        told = [word for word in words if word.encode() in content or word in name]
        assert not told, f"{name} says {told}"
    assert len(list(out.glob("image-000*/report.html"))) == 2
    assert NAME in (tmp_path / "out-key.csv").read_text()
    assert NAME not in done.stderr + done.stdout.replace(str(tmp_path), "")


def test_neither_when_something_unexpected_happens(
    place: Path, run: Path, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(image: Path, *_: object, **__: object) -> None:
        raise ZeroDivisionError(f"division of {image} by zero")

    monkeypatch.setattr("protopfaith.explanation.explainer.open_picture", broken)
    out = tmp_path / "out"
    out.mkdir()
    done = explained(place, run, secret, out)
    assert done.stderr.count("Failed: image-000") == 4
    assert NAME not in done.stderr
    assert all(NAME.encode() not in content for content in contents(out).values())
