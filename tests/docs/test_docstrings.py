"""Every public name says what it takes, parameter by parameter, and shows itself in an example that runs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

ROOMS = (
    "moments",
    "shapley",
    "network",
    "data",
    "training",
    "conversion",
    "explanation",
    "evaluation",
    "show",
)


def public() -> Iterator[Any]:
    """Functions and classes that a package exports; registries and numbers speak for themselves."""
    for room in ROOMS:
        package = importlib.import_module(f"protopfaith.{room}")
        for name in package.__all__:
            found = getattr(package, name)
            if inspect.isclass(found) or inspect.isfunction(found):
                yield pytest.param(found, id=f"{room}.{name}")


def described(found: Any) -> set[str]:
    """The parameters under `Args:`, of a class in its own docstring or in that of its `__init__`."""
    texts = [inspect.getdoc(found) or ""]
    if inspect.isclass(found):
        texts.append(inspect.getdoc(found.__init__) or "")
    sections = [text.partition("Args:\n")[2].partition("\n\n")[0] for text in texts]
    return {name for section in sections for name in re.findall(r"^ {4}(\w+): \S", section, re.MULTILINE)}


@pytest.mark.parametrize("found", list(public()))
def test_every_parameter_is_described(found: Any) -> None:
    missing = [name for name in inspect.signature(found).parameters if name not in described(found)]
    assert missing == []


@pytest.mark.parametrize("found", list(public()))
def test_there_is_an_example_that_runs(found: Any) -> None:
    text = inspect.getdoc(found) or ""
    assert ">>> " in text
    assert "doctest: +SKIP" not in text
