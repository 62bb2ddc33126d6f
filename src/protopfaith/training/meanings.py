"""A recipe with the meaning of every key, as `protopfaith recipes show` prints it."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import yaml

from protopfaith.training.recipe import Recipe


def explained_recipe(recipe: Recipe) -> str:
    """A recipe as YAML, complete, with the meaning of every key.

    >>> print(explained_recipe(Recipe()).splitlines()[0])
    seed: 0  # of all random choices
    """
    return "\n".join(_lines(recipe, recipe.to_dict(), ""))


def _lines(section: Any, plain: dict[str, Any], indent: str) -> list[str]:
    """`plain` is the section as YAML holds it."""
    lines = []
    for field in fields(section):
        value, meaning = getattr(section, field.name), field.metadata["meaning"]
        if is_dataclass(value):
            lines.append(f"{indent}{field.name}:  # {meaning}")
            lines += _lines(value, plain[field.name], f"{indent}  ")
        else:
            text = yaml.safe_dump(plain[field.name], default_flow_style=True, width=1_000)
            lines.append(f"{indent}{field.name}: {text.strip().removesuffix('...').strip()}  # {meaning}")
    return lines
