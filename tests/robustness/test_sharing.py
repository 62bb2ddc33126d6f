"""Results into one folder from two processes, and from a run that nobody may write to."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from protopfaith import writing
from tests.robustness.harness import run_program

DROP_CAPABILITY, WRITE_ANYWHERE = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
IMAGES = [f"images/red/{number}.png" for number in range(3)]
QUICK = ["--players", "12", "--budget", "64", "--device", "cpu"]


@pytest.fixture
def place(tmp_path: Path, template: Path) -> Path:
    shutil.copytree(template / "run", tmp_path / "run")
    shutil.copytree(template / "images", tmp_path / "images")
    return tmp_path


def command(place: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "protopfaith", "explain", "run", *IMAGES, "--root", "images"]
    return [*program, *QUICK, "--out", str(place / "out"), *more]


def environment(place: Path) -> dict[str, str]:
    return {**os.environ, "PROTOPFAITH_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}


def finished(place: Path) -> int:
    return len(list((place / "out").glob("*/report.html")))


def test_two_explain_into_one_folder_at_once(place: Path) -> None:
    both = [
        subprocess.Popen(
            command(place), cwd=place, env=environment(place), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    for one in both:
        _, errors = one.communicate(timeout=300)
        assert one.returncode == 0, errors.decode()
    assert finished(place) == len(IMAGES)
    assert not list((place / "out").glob("*.partial"))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS], ids=["permission", "read-only"])
def test_a_run_that_cannot_be_written_to_is_explained(
    place: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for a place in the run's folder is refused, as a read-only disk would."""
    real = Path.mkdir

    def mkdir(path: Path, *arguments: object, **keywords: object) -> None:
        refuse(path)
        real(path, *arguments, **keywords)  # type: ignore[arg-type]

    def refuse(path: Path) -> None:
        if (place / "run") in (path.absolute(), *path.absolute().parents):
            raise OSError(code, os.strerror(code), str(path))

    before = {path: path.stat().st_mtime_ns for path in (place / "run").rglob("*")}
    flush = writing._flush

    def flushed(path: Path) -> None:
        refuse(path)
        flush(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(writing, "_flush", flushed)
    done = run_program(place, command(place)[3:])
    assert done.code == 0, done.err
    assert finished(place) == len(IMAGES)
    after = {path: path.stat().st_mtime_ns for path in (place / "run").rglob("*") if not path.is_dir()}
    assert after == {path: time for path, time in before.items() if not path.is_dir()}


@pytest.fixture
def locked(place: Path) -> Iterator[Path]:
    """A run whose owner has no right to write."""
    inside = [place / "run", *(place / "run").rglob("*")]
    for path in inside:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield place
    for path in inside:
        path.chmod(0o755 if path.is_dir() else 0o644)


def without_privileges() -> None:
    """Root, who may write everywhere, is an owner like others in the program that comes next."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(DROP_CAPABILITY, WRITE_ANYWHERE, 0, 0, 0)


def run_as_owner(place: Path, program: list[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        program,
        cwd=place,
        env=environment(place),
        capture_output=True,
        check=False,
        preexec_fn=without_privileges,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="drops a privilege of Linux")
def test_a_read_only_run_is_explained(locked: Path) -> None:
    if run_as_owner(locked, ["touch", "run/recipe.yaml", "run/new"]).returncode == 0:
        pytest.skip("root may write everywhere, and this privilege cannot be dropped here")
    done = run_as_owner(locked, command(locked))
    assert done.returncode == 0, done.stderr.decode()
    assert finished(locked) == len(IMAGES)
    assert not (locked / "run" / "explanations").exists()
