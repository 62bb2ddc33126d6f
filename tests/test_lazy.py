"""Names that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import protopfaith.training
from protopfaith.lazy import lazily

PROGRAM = """
import sys
from protopfaith.training import load_grid, load_recipe
load_recipe("cub"), load_grid("cub").recipes()
assert "torch" not in sys.modules
from protopfaith.training import train
assert "torch" in sys.modules
"""


def test_recipes_and_grids_are_read_without_torch() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


def test_every_name_is_there_and_others_are_not() -> None:
    for name in protopfaith.training.__all__:
        found = getattr(protopfaith.training, name)
        assert getattr(found, "__name__", name) == name
    assert dir(protopfaith.training) == sorted(protopfaith.training.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lazily("protopfaith.training", {})("nonsense")
