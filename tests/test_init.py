"""The names of the package: loaded when they are used, and these."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import protopfaith as pf

NAMES = {
    "Attribution",
    "Explainer",
    "Game",
    "Gaussian",
    "Players",
    "ProtoPFaithError",
    "ProtoPNet",
    "Run",
    "__version__",
    "convert",
    "estimate",
    "explain",
    "explain_function",
    "faithfulness",
    "train",
}


def test_these_names_are_public() -> None:
    assert set(pf.__all__) == NAMES == set(dir(pf))
    assert {*pf._HOMES, "__version__"} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES - {"__version__"}))
def test_every_name_is_what_it_says(name: str) -> None:
    found = getattr(pf, name)
    assert callable(found)
    assert not isinstance(found, ModuleType)
    assert found.__name__ == name
    assert found.__module__ != f"protopfaith.{name}"  # a function never hides its module
    assert found.__doc__


def test_importing_loads_nothing_heavy() -> None:
    program = "import sys, protopfaith; print({'torch', 'numpy', 'rich', 'typer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'explian'"):
        pf.explian  # noqa: B018
