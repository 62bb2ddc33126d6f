"""The command line as a user runs it, on a small folder of images."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import yaml
from PIL import Image

from protopfaith.cli import main
from protopfaith.training import Run

CLASSES = ("blue", "green", "red")
TINY = {
    "data": {"name": "folder", "size": [24, 24]},
    "model": {"encoder": "small", "prototypes_per_class": 2, "prototype_channels": 8},
    "optimization": {"batch_size": 12, "learning_rate": 0.01},
    "schedule": {
        "cycles": 1,
        "pretraining": {"epochs": 1},
        "warmup": {"epochs": 1},
        "joint": {"epochs": 1},
        "classifier": {"epochs": 2},
    },
    "compute": {"accelerator": "cpu", "resident": "always"},
}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images of three classes and a recipe."""
    folder = tmp_path_factory.mktemp("user")
    random = np.random.default_rng(0)
    for label, name in enumerate(CLASSES):
        (folder / "images" / name).mkdir(parents=True)
        for number in range(12):
            pixels = random.integers(0, 90, (30, 40, 3), dtype=np.uint8)
            pixels[8:20, 10:25, 2 - label] = 240
            Image.fromarray(pixels).save(folder / "images" / name / f"{number}.png")
    (folder / "empty").mkdir()
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return folder


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def protopfaith(place: Path, *arguments: str) -> Done:
    """The program in `place`, inside this process: importing torch anew for every call takes seconds."""
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    code: int | str | None = 0
    with (
        mock.patch.dict(os.environ),
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["protopfaith", *arguments])
        patch.setattr(sys, "path", list(sys.path))
        patch.setenv("COLUMNS", "200")
        patch.setenv("PROTOPFAITH_CACHE", str(place / "cache"))
        os.chdir(place)
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        finally:
            os.chdir(before)
    return Done(int(code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def run(place: Path) -> Path:
    done = protopfaith(place, "train", "tiny.yaml", "--root", "images", "--out", "runs/tiny")
    assert done.returncode == 0, done.stderr
    assert "prototypes distinct" in done.stdout
    row = Run(place / "runs" / "tiny").result()["epoch"]  # rows count from zero, epochs for people from one
    assert f"Best epoch {row + 1}:" in done.stdout
    assert "classifier (F)   epoch    5" in done.stderr
    return place / "runs" / "tiny"


def fails_with(done: Done, *words: str) -> None:
    """One sentence for people: no traceback, exit code 1."""
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
