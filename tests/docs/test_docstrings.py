"""Every public name says what it takes, parameter by parameter, and shows itself in an example that runs."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import protopfaith

PACKAGES = (
    "moments",
    "shapley",
    "network",
    "data",
    "training",
    "conversion",
    "explanation",
    "evaluation",
    "show",
    "serve",
)


def public() -> Iterator[Any]:
    """Functions and classes that a package exports; registries and numbers speak for themselves."""
    for folder in PACKAGES:
        package = importlib.import_module(f"protopfaith.{folder}")
        for name in package.__all__:
            found = getattr(package, name)
            if inspect.isclass(found) or inspect.isfunction(found):
                yield pytest.param(found, id=f"{folder}.{name}")


def methods() -> Iterator[Any]:
    """Public methods with parameters of exported classes, each where it is defined."""
    for case in public():
        owner = case.values[0]
        for name, found in vars(owner).items() if inspect.isclass(owner) else ():
            function = getattr(found, "__func__", found)  # of class and static methods
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            bound = not isinstance(found, staticmethod)
            parameters = list(inspect.signature(function).parameters)[bound:]
            if parameters:
                yield pytest.param(owner, name, parameters, id=f"{case.id}.{name}")


def listed(text: str) -> set[str]:
    """The parameters under `Args:`."""
    section = text.partition("Args:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^ {4}(\w+): \S", section, re.MULTILINE))


def described(found: Any) -> set[str]:
    """Those of a function or a class, the latter in its own docstring or in that of its `__init__`."""
    texts = [inspect.getdoc(found) or ""]
    if inspect.isclass(found):
        texts.append(inspect.getdoc(found.__init__) or "")
    return set().union(*map(listed, texts))


@pytest.mark.parametrize("found", list(public()))
def test_every_parameter_is_described(found: Any) -> None:
    missing = [name for name in inspect.signature(found).parameters if name not in described(found)]
    assert missing == []


@pytest.mark.parametrize(("owner", "name", "parameters"), list(methods()))
def test_every_parameter_of_a_method_is_described(owner: type, name: str, parameters: list[str]) -> None:
    """By the method itself, or by the one of a parent that it takes the place of."""
    known = [vars(parent)[name] for parent in owner.__mro__ if name in vars(parent)]
    told = set().union(*(listed(inspect.getdoc(getattr(one, "__func__", one)) or "") for one in known))
    assert [one for one in parameters if one not in told] == []


@pytest.mark.parametrize("found", list(public()))
def test_there_is_an_example_that_runs(found: Any) -> None:
    text = inspect.getdoc(found) or ""
    assert ">>> " in text
    endless = "until it is interrupted" in text  # an example of it would not come to its end
    assert endless or "doctest: +SKIP" not in text


def test_fields_are_described_by_their_class() -> None:
    """Under `Args:` like any parameter, not by a text below each field."""
    found = []
    for path in Path(protopfaith.__file__).parent.rglob("*.py"):
        for owner in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            body = owner.body if isinstance(owner, ast.ClassDef) else []
            for field, below in pairwise(body):
                if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                    found.append(f"{path.name}:{below.lineno}")
    assert found == []
