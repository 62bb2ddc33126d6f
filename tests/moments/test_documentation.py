import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import protopfaith.moments
import protopfaith.network  # registers the rules of Q
from protopfaith.moments import RULES

PAGE = Path(__file__).parents[2] / "docs" / "moments.md"
MODULES = [
    module.name
    for module in pkgutil.walk_packages(protopfaith.moments.__path__, "protopfaith.moments.")
    if not module.ispkg
]


def test_every_rule_has_its_line_in_the_table_and_every_line_its_rule():
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    rules = {found.__name__ for found in RULES.values() if found.__module__.startswith("protopfaith.")}
    assert sorted(listed) == sorted(rules)


def test_every_rule_says_its_formula():
    assert all(found.__doc__ for found in RULES.values())


@pytest.mark.parametrize("name", ["protopfaith.moments", *MODULES])
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
