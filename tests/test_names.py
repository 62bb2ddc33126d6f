"""One name for one thing, all over the package."""

from __future__ import annotations

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
