"""Every command that the documentation says to type has these options, and the tutorial's script runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from protopfaith.cli.app import app
from protopfaith.data import load_data

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> Iterator[str]:
    """What stands in a line of its own, or between backticks, and begins with the program's name."""
    text = page.read_text(encoding="utf-8")
    yield from re.findall(r"^\s*(protopfaith [^\n`]+)$", text, flags=re.MULTILINE)
    yield from (" ".join(found.split()) for found in re.findall(r"`(protopfaith [^`]+)`", text))


WRITTEN = sorted({(page.relative_to(ROOT).as_posix(), line) for page in PAGES for line in commands(page)})


def test_commands_are_found() -> None:
    assert len(WRITTEN) > 20


@pytest.mark.parametrize(("page", "line"), WRITTEN)
def test_a_written_command_has_these_options(page: str, line: str) -> None:
    words = shlex.split(line.partition("#")[0])[1:]
    command: Any = typer.main.get_command(app)
    known = options_of(command)
    for word in words:
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
            known |= options_of(command)
    unknown = [word for word in words if word.startswith("--") and word not in known]
    assert not unknown, f"{page} says {line!r}"
    has_verb = not getattr(command, "commands", None) or command.invoke_without_command
    assert has_verb or "..." in line or words[0].startswith("--"), f"{page} says {line!r}"


def options_of(command: Any) -> set[str]:
    return {"--help"}.union(*({*parameter.opts, *parameter.secondary_opts} for parameter in command.params))


def test_the_script_of_the_tutorial_draws_folders_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    found = re.search(r'```python title="draw.py"\n(.*?)```', tutorial, re.DOTALL)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    exec(compile(found[1].replace("train=640", "train=32"), "draw.py", "exec"), {})
    data = load_data("folder", root="my-images", size=32)
    assert len(data.classes) == 4
    assert sum(len(images) for images in data.sets().values()) == 16
    assert len(list(Path("new").iterdir())) == 4
