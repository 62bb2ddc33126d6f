"""What docs/data.md says of the recipes is what they do."""

from __future__ import annotations

import re
from pathlib import Path

from protopfaith.training import load_recipe, recipe_names

MANUAL = Path(__file__).parents[2] / "docs" / "data.md"


def cells(recipe: str) -> list[str]:
    """The line that the recipe should have."""
    a = load_recipe(recipe).augmentation
    low, high = a.scale
    scale = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    size = "as is" if a.size is None else f"{a.size[0]} x {a.size[1]}"
    numbers = [f"{a.rotation:g}", f"{a.shear:g}", f"{a.translation:g}", scale, f"{a.flip:g}", f"{a.color:g}"]
    return [*numbers, size]


def test_the_table_of_augmentation_has_every_recipe_as_it_is() -> None:
    section = MANUAL.read_text(encoding="utf-8").split("## Augmentation")[1].split("\n## ")[0]
    found = {}
    for line in section.splitlines():
        first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
        for recipe in re.findall(r"`(\w+)`", first) if line.startswith("| `") else []:
            found[recipe] = rest
    assert found == {recipe: cells(recipe) for recipe in recipe_names()}
