from __future__ import annotations

from typing import Any

import pytest
import yaml

from protopfaith.training import load_recipe, recipe_names
from protopfaith.training.meanings import MEANINGS, explained_recipe
from protopfaith.training.recipe import Recipe


def keys(values: dict[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key, value in values.items():
        found.append(f"{prefix}{key}")
        if isinstance(value, dict):
            found += keys(value, f"{prefix}{key}.")
    return found


def test_every_key_has_a_meaning_and_every_meaning_a_key() -> None:
    assert sorted(keys(Recipe().to_dict())) == sorted(MEANINGS)


@pytest.mark.parametrize("name", recipe_names())
def test_an_explained_recipe_is_the_recipe(name: str) -> None:
    recipe = load_recipe(name)
    text = explained_recipe(recipe)
    assert yaml.safe_load(text) == yaml.safe_load(yaml.safe_dump(recipe.to_dict()))
    assert all("  # " in line for line in text.splitlines())
