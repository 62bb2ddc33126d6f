"""One name for one thing, all over the package."""

from __future__ import annotations

import dataclasses
import inspect
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

import pytest

import protopfaith


def modules() -> list[str]:
    found = walk_packages(protopfaith.__path__, "protopfaith.")
    return sorted(module.name for module in found if not module.name.endswith("__main__"))


@pytest.mark.parametrize("name", [name for name in modules() if hasattr(import_module(name), "__path__")])
def test_no_exported_thing_shadows_a_module(name: str) -> None:
    package = import_module(name)
    inside = {module.rpartition(".")[2] for module in modules() if module.rpartition(".")[0] == name}
    shadowed = [one for one in inside if not isinstance(getattr(package, one, package), ModuleType)]
    assert not shadowed, f"{name} exports something under the name of its module {shadowed}"


@pytest.mark.parametrize("name", modules())
def test_every_module_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(import_module(name)), name


def results() -> list[type]:
    """Dataclasses that packages export: what people get, and see when they print it."""
    packages = [import_module(name) for name in modules() if hasattr(import_module(name), "__path__")]
    exported = [getattr(package, name) for package in packages for name in getattr(package, "__all__", ())]
    found = {one for one in exported if inspect.isclass(one) and dataclasses.is_dataclass(one)}
    return sorted(found, key=lambda one: one.__name__)


def test_results_are_found() -> None:
    assert {"Attribution", "Explanation", "Faithfulness"} <= {one.__name__ for one in results()}


@pytest.mark.parametrize("result", results(), ids=lambda result: result.__name__)
def test_a_result_prints_on_one_line(result: type) -> None:
    """A generated `repr` prints every field, and tensors and tables have many lines."""
    if "__create_fn__" not in result.__repr__.__qualname__ and not hasattr(result.__repr__, "__wrapped__"):
        return  # written by hand; the tests of its module print it
    shown = [field for field in dataclasses.fields(result) if field.repr]
    long = [
        one.name for one in shown if any(word in str(one.type) for word in ("Tensor", "ndarray", "Frame"))
    ]
    assert not long, f"{result.__name__} prints {', '.join(long)} over several lines; write a __repr__."
