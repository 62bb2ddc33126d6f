"""What the documentation names is there: modules and names to import, files of this repository."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"^```python[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`([\w/]+/(?:\w+\.py)?)`")
NAME = re.compile(r"`(protopfaith(?:\.\w+)+)[`(]")


def imported(code: str) -> Iterator[str]:
    """The dotted names that a piece of code imports from this package."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("protopfaith"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_to_import_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = {name for code in CODE.findall(text) for name in imported(code)} | set(NAME.findall(text))
    assert [name for name in sorted(names) if not is_there(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_are_named_are_there(page: Path) -> None:
    """Files of Python, and folders that begin like one of ours."""
    files = set(FILE.findall(page.read_text(encoding="utf-8")))
    places = (ROOT, ROOT / "src", ROOT / "src" / "protopfaith")
    first = {path.name for place in places for path in place.iterdir() if path.is_dir()}
    ours = {file for file in files if file.split("/")[0] in first and not file.startswith("site")}
    assert [file for file in sorted(ours) if not any((place / file).exists() for place in places)] == []
