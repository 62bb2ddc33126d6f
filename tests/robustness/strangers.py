"""Runs that somebody else made: the places that they name are not read unless their user says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from protopfaith.training.trust import TRUSTED
from tests.robustness.harness import Case, Place
from tests.robustness.runs import COMMANDS, Damage

READ = ("evaluate", "prune", "prototypes", "faithfulness", "resume")  # commands that need the run's images


def without_root(command: str, place: Place) -> list[Any]:
    arguments = COMMANDS[command](place)
    if "--root" in arguments:
        where = arguments.index("--root")
        del arguments[where : where + 2]
    return arguments


def unmarked(place: Place) -> None:
    """As an earlier version, or somebody else, left it."""
    _environment(place, lambda values: [values.pop(key, None) for key in ("id", "mark")])


def forged(place: Place) -> None:
    _environment(place, lambda values: values.update(id="0" * 32, mark="0" * 64))


def odd_mark(place: Place) -> None:
    _environment(place, lambda values: values.update(id=[1], mark={"a": "ä"}))


def pointing_elsewhere(place: Place) -> None:
    """A run of one's own that came back with another folder in its recipe."""
    place.images.rename(place / "private")
    _recipe(place, root=str(place / "private"))


def with_a_table(place: Place) -> None:
    place.write("private.csv", "image,group\nblue/0.png,a\n")
    _recipe(place, groups=str(place / "private.csv"))


def _environment(place: Place, change: Any) -> None:
    path = place / "run" / "environment.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def _recipe(place: Place, **data: str) -> None:
    path = place / "run" / "recipe.yaml"
    values = yaml.safe_load(path.read_text())
    values["data"] |= data
    path.write_text(yaml.safe_dump(values))


def stranger(name: str, change: Damage, command: str, **rest: Any) -> Case:
    def arguments(place: Place) -> list[Any]:
        place.run  # noqa: B018  (copied now)
        change(place)
        return without_root(command, place)

    return Case(f"{command} on a stranger's run: {name}", arguments, **rest)


def given_root(name: str, change: Damage, command: str, **rest: Any) -> Case:
    def arguments(place: Place) -> list[Any]:
        place.run  # noqa: B018  (copied now)
        change(place)
        return COMMANDS[command](place)

    return Case(f"{command} on a stranger's run with --root: {name}", arguments, **rest)


def explain_with_sources(name: str, change: Damage) -> Case:
    def arguments(place: Place) -> list[Any]:
        place.run  # noqa: B018  (copied now)
        change(place)
        return [one for one in COMMANDS["explain"](place) if one != "--no-sources"]

    return Case(f"explain with sources on a stranger's run: {name}", arguments, says=("--root",))


CHANGES: dict[str, Damage] = {
    "no mark": unmarked,
    "a forged mark": forged,
    "a mark of odd types": odd_mark,
    "another folder": pointing_elsewhere,
}

CASES = [
    *(
        stranger(name, change, command, says=("run", "--root"))
        for name, change in CHANGES.items()
        for command in READ
    ),
    *(explain_with_sources(name, change) for name, change in CHANGES.items()),
    *(given_root("a table of groups", with_a_table, command, says=(TRUSTED,)) for command in READ[:2]),
]

GOOD = [
    *(given_root("no mark", unmarked, command, good=True) for command in ("evaluate", "resume")),
    *(stranger("nothing wrong", lambda place: None, command, good=True) for command in ("prune", "resume")),
    stranger(
        "no mark, a trusted folder", unmarked, "evaluate", good=True, environment={TRUSTED: str(Path("/"))}
    ),
    stranger("no mark", unmarked, "explain", good=True),
    stranger("no mark", unmarked, "predict", good=True),
]
