"""Kills commands at random moments and compares what is there in the end with an undisturbed run, bit by bit.

python -m tests.robustness.faults [KILLS] [COMMAND ...]
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors import safe_open

QUICK = ["--players", "12", "--budget", "256", "--device", "cpu"]
COMMANDS: dict[str, list[str]] = {
    "train": ["train", "tiny.yaml", "--root", "images", "--out", "new"],
    "explain": ["explain", "run", "images/red", "--root", "images", *QUICK, "--out", "out"],
    "prototypes": ["prototypes", "run", "--root", "images", *QUICK, "--out", "out"],
    "faithfulness": ["faithfulness", "run", "--root", "images", "--explainers", "owen,random", "--players", "12",
                     "--budget", "128", "--truth-budget", "0", "--steps", "5", "--checked", "1", "--out", "out"],
    "prune": ["prune", "run", "--root", "images", "--prototypes", "0", "--device", "cpu", "--out", "new"],
    "data prepare": ["data", "prepare", "folder", "--root", "images", "--size", "64"],
}  # fmt: skip


def start(place: Path, arguments: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PROTOPFAITH_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "protopfaith", *arguments]
    return subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(place: Path, name: str) -> None:
    """The command to its end; a training that was begun is resumed, a new run that is there is whole."""
    if name == "prune" and (place / "new").exists():
        return
    arguments = COMMANDS[name]
    if name == "train" and (place / "new" / "recipe.yaml").is_file():
        arguments = [*arguments, "--resume"]
    done = start(place, arguments)
    _, errors = done.communicate()
    assert done.returncode == 0, f"{name} failed after a kill: {errors.decode()[-2000:]}"


def result(place: Path) -> dict[str, object]:
    """What counts of the files that a command leaves: tensors and arrays by their bits, others by being there."""
    found: dict[str, object] = {}
    for top in ("new", "out", "cache/images"):
        for path in sorted((place / top).rglob("*")):
            name = path.relative_to(place).as_posix()
            assert not name.endswith(".partial"), f"{name} was left"
            if path.suffix == ".safetensors":
                with safe_open(path, "pt") as file:
                    found[name] = {key: file.get_tensor(key).numpy().tobytes() for key in file.keys()}  # noqa: SIM118
            elif path.suffix == ".npz":
                with np.load(path) as archive:
                    found[name] = {
                        key: archive[key].tobytes() for key in archive.files if "seconds" not in key
                    }
            elif path.name == "pixels.npy":
                found[name] = path.read_bytes()
            elif path.is_file() and path.suffix in (".html", ".json", ".csv", ".png"):
                found[name] = True
    return found


def disturbed(template: Path, folder: Path, name: str, kills: int, seconds: float) -> dict[str, object]:
    """The result after so many kills at random moments."""
    place = shutil.copytree(template, folder)
    for _ in range(kills):
        running = start(place, resumed(place, name))
        try:
            running.wait(random.uniform(0.05, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    finish(place, name)
    return result(place)


def resumed(place: Path, name: str) -> list[str]:
    there = name == "train" and (place / "new" / "recipe.yaml").is_file()
    return [*COMMANDS[name], "--resume"] if there else COMMANDS[name]


def main() -> None:
    from tests.robustness.conftest import make_template

    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    names = sys.argv[2:] or list(COMMANDS)
    random.seed(0)
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template"
        template.mkdir()
        os.environ["PROTOPFAITH_CACHE"] = str(template / "cache")
        make_template(template)
        shutil.rmtree(template / "cache")
        for name in names:
            undisturbed = shutil.copytree(template, Path(folder) / f"{name}-whole")
            begin = time.monotonic()
            finish(undisturbed, name)
            seconds = time.monotonic() - begin
            expected = result(undisturbed)
            found = disturbed(template, Path(folder) / f"{name}-killed", name, kills, seconds)
            different = sorted(
                key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)
            )
            assert not different, f"{name}: {different[:5]} differ after {kills} kills"
            print(f"{name}: {kills} kills, {len(expected)} files are the same", flush=True)


if __name__ == "__main__":
    main()
