from __future__ import annotations

import pytest
import yaml

from protopfaith.training import load_recipe, recipe_names
from protopfaith.training.meanings import explained_recipe


@pytest.mark.parametrize("name", recipe_names())
def test_an_explained_recipe_is_the_recipe_with_a_meaning_in_every_line(name: str) -> None:
    recipe = load_recipe(name)
    text = explained_recipe(recipe)
    assert yaml.safe_load(text) == yaml.safe_load(yaml.safe_dump(recipe.to_dict()))
    assert all(line.partition("  # ")[2] for line in text.splitlines())
