"""Where results go: inputs are never overwritten, places that cannot be written to are named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.robustness.harness import Case, Place
from tests.robustness.options import QUICK
from tests.robustness.runs import COMMANDS


def out(command: str, target: str, *, says: tuple[str, ...] = (), make: Any = None) -> Case:
    def arguments(place: Place) -> list[Any]:
        if make is not None:
            make(place)
        option = {"predict": "--csv"}.get(command, "--out")
        return [*COMMANDS[command](place), option, target.format(run=place.run, image=place.image)]

    return Case(f"{command} into {target}", arguments, says=says)


def show(target: str, *, says: tuple[str, ...] = ()) -> Case:
    def arguments(place: Place) -> list[Any]:
        return [
            "data",
            "show",
            "folder",
            "--root",
            place.images,
            "--size",
            "24",
            "--out",
            target.format(image=place.image, images=place.images),
        ]

    return Case(f"data show into {target}", arguments, says=says)


def train_into(name: str, make: Any) -> Case:
    def arguments(place: Place) -> list[Any]:
        place.copy("tiny.yaml")
        return ["train", "tiny.yaml", "--root", place.images, "--out", make(place)]

    return Case(f"train into {name}", arguments)


def csv_onto(name: str, make: Any) -> Case:
    def arguments(place: Place) -> list[Any]:
        return ["predict", place.run, place.image, "--device", "cpu", "--csv", make(place)]

    return Case(f"predict --csv onto {name}", arguments)


def own_folder(place: Place) -> list[Any]:
    place.copy("good.png", "d/good.png")
    return ["explain", place.run, place / "d", *QUICK, "--out", place / "d"]


def twice(place: Place) -> list[Any]:
    """Into the folder of the images, again: its own figures must not be taken for images."""
    from tests.robustness.harness import run_program

    arguments = own_folder(place)
    run_program(place.folder, [str(one) for one in arguments])
    return arguments


def only_one_case(place: Place) -> None:
    cases = {path.parent.name for path in (place / "d").rglob("*.json")}
    assert len(list((place / "d").rglob("*.npz"))) <= 1, cases


def damaged_case(content: str, name: str) -> Case:
    """An older case in the output folder is broken: it is skipped and named, the new one is written."""

    def arguments(place: Place) -> list[Any]:
        from tests.robustness.harness import run_program

        place.write("old.png", place.image.read_bytes())
        first = ["explain", place.run, place / "old.png", *QUICK, "--out", place / "out"]
        run_program(place.folder, [str(one) for one in first])
        found = sorted(path for path in (place / "out").rglob("*.json"))
        assert found
        for path in found:
            path.write_text(content)
        return ["explain", place.run, place.image, *QUICK, "--out", place / "out"]

    def written(place: Place) -> None:
        assert (place / "out" / "index.html").is_file()
        assert list((place / "out").rglob("*good*"))

    return Case(f"explain beside an older case that is {name}", arguments, good=True, check=written)


def _link(place: Place) -> Path:
    os.symlink(place.image, place / "link.csv")
    return place / "link.csv"


CASES = [
    out("predict", "{image}", says=("good.png",)),
    out("predict", "{run}/model.safetensors", says=("model.safetensors",)),
    out("predict", "{run}/recipe.yaml", says=("recipe.yaml",)),
    out("predict", "{run}/environment.json"),
    out("predict", "."),
    out("predict", ""),
    out("predict", "{run}"),
    out("predict", "/dev/null/x.csv"),
    out("predict", "/proc/x.csv"),
    out("predict", "x" * 300 + ".csv"),
    out("explain", "{image}", says=("good.png",)),
    out("explain", "{run}/model.safetensors"),
    out("explain", "/dev/null/x"),
    out("explain", "/proc/x"),
    out("explain", ""),
    out("prototypes", "{run}/model.safetensors"),
    out("prototypes", "/proc/x"),
    out("prune", "{run}"),
    out("prune", "{image}"),
    out("prune", "/proc/x"),
    out("faithfulness", "{run}/model.safetensors"),
    show("{image}", says=("good.png",)),
    show("{images}/red/0.png"),
    show("."),
    show(""),
    show("/proc/x.png"),
    show("{images}"),
    train_into("a file", lambda place: place.image),
    train_into("a folder that is full", lambda place: place.images),
    train_into("nowhere", lambda place: "/proc/x"),
    train_into("a path under a file", lambda place: place.image / "x"),
    train_into("an empty name", lambda place: ""),
    csv_onto("a link to an image", _link),
]

GOOD = [
    Case("explain a folder into itself", own_folder, good=True, check=only_one_case),
    Case("explain a folder into itself, twice", twice, good=True, check=only_one_case),
    damaged_case("", "empty"),
    damaged_case("{", "cut"),
    damaged_case("[1, 2]", "a list"),
    damaged_case("{}", "without keys"),
    damaged_case("[" * 100_000, "deep"),
    Case("predict --csv into a new folder", lambda p: ["predict", p.run, p.image, "--device", "cpu", "--csv", "a/b/c.csv"], good=True),
    Case("predict --csv over an older csv", lambda p: ["predict", p.run, p.image, "--device", "cpu", "--csv", p.write("old.csv", "image,class\n")], good=True),
]  # fmt: skip
