"""The same command once more, after something happened to a file that it left: it is made anew, or named."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.robustness.harness import Case, Place, run_program
from tests.robustness.runs import COMMANDS

Damage = Callable[[Path], Any]


def replaced(make: Damage) -> Damage:
    return lambda path: (path.unlink(), make(path))


CUT: dict[str, Damage] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(bytes(range(1, 256))),
    "gone": lambda path: path.unlink(),
    "a link to itself": replaced(lambda path: path.symlink_to(path.name)),
}
"""Made anew."""
PIPE = replaced(os.mkfifo)
FOLDER = replaced(lambda path: path.mkdir())


def prepared(place: Place) -> list[Any]:
    return ["data", "prepare", "folder", "--root", place.images, "--size", "24"]


LEFT = {
    "data prepare": (prepared, ("cache/images/*/index.json", "cache/images/*/pixels.npy", "cache/splits/*")),
    "explain": (
        lambda place: [*COMMANDS["explain"](place), "--out", place / "out"],
        tuple(f"out/good*/{name}" for name in ("explanation.json", "explanation.npz", "report.html")),
    ),
    "faithfulness": (
        lambda place: [*COMMANDS["faithfulness"](place), "--out", place / "out"],
        ("out/results/owen/prototype-0.npz", "out/prototypes.csv"),
    ),
    "prototypes": (
        lambda place: [*COMMANDS["prototypes"](place), "--out", place / "out"],
        ("out/prototypes.json", "run/explanations/sources/*/0.npz"),
    ),
}


def again(name: str, pattern: str, what: str, damage: Damage, *, good: bool) -> Case:
    cache = {"PROTOPFAITH_CACHE": "cache"}

    def arguments(place: Place) -> list[Any]:
        command = LEFT[name][0](place)
        done = run_program(place.folder, [str(one) for one in command], cache)
        assert not done.code, done.err
        damage(next(place.folder.glob(pattern)))
        return command

    def whole(place: Place) -> None:
        found = next(place.folder.glob(pattern))
        assert found.is_file()
        assert found.stat().st_size > 255

    more = {"good": True, "check": whole} if good else {"says": (Path(pattern).name.strip("*"),)}
    return Case(f"{name} again: {pattern} is {what}", arguments, environment=cache, **more)


CASES = [
    again(name, pattern, what, damage, good=False)
    for name, patterns in {
        "explain": ("out/good*/report.html", "out/index.html"),
        "prototypes": ("out/prototypes.json",),
    }.items()
    for pattern in patterns
    for what, damage in {"a folder": FOLDER, "a pipe": PIPE}.items()
]
GOOD = [
    *(
        again(name, pattern, what, damage, good=True)
        for name, (_, patterns) in LEFT.items()
        for pattern in patterns
        for what, damage in CUT.items()
    ),
    again("data prepare", "cache/images/*/index.json", "a pipe", PIPE, good=True),
    again("data prepare", "cache/images/*/pixels.npy", "a pipe", PIPE, good=True),
    again("data prepare", "cache/images/*/pixels.npy", "a folder", FOLDER, good=True),
]
