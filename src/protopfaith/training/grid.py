"""Search spaces: a recipe, and the values to try for some of its keys."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file
from protopfaith.registry import did_you_mean
from protopfaith.training.recipe import Recipe, load_recipe, parse_mapping, read_text
from protopfaith.typed import from_dict

MOST_POINTS = 10_000


@dataclass(frozen=True)
class Grid:
    """A search: the recipe to start from, and the values to try for some of its keys."""

    recipe: str
    search: dict[str, Any] = field(default_factory=dict)

    def points(self) -> Iterator[dict[str, Any]]:
        """Every combination, the last key changing fastest."""
        for values in itertools.product(*self.search.values()):
            yield dict(zip(self.search, values, strict=True))

    def recipes(self, overrides: Sequence[str] = ()) -> list[Recipe]:
        """The recipe of every point; `overrides` hold for all of them."""
        return [load_recipe(self.recipe, [*overrides, *_as_overrides(point)]) for point in self.points()]


def _as_overrides(point: dict[str, Any]) -> list[str]:
    """As JSON, which is YAML as well: None is null there, and text is quoted."""
    return [f"{key}={json.dumps(value)}" for key, value in point.items()]


def grid_names() -> list[str]:
    """The search spaces in the package.

    >>> "cub" in grid_names()
    True
    """
    folder = resources.files("protopfaith.training") / "recipes" / "grids"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir())


def load_grid(name_or_path: str | Path) -> Grid:
    """A search space of the package by name, or a YAML file with `recipe` and `search` (key: list).

    Args:
        name_or_path: one of `grid_names`, or a YAML file

    >>> load_grid("cub").recipe
    'cub'
    """
    check_arguments(load_grid, locals())
    path = Path(instance(name_or_path, (str, Path), "A search space", "a name or a YAML file"))
    if is_file(path):
        text = read_text(path)
    elif str(name_or_path) in grid_names():
        text = (resources.files("protopfaith.training") / "recipes" / "grids" / f"{path}.yaml").read_text()
    else:
        hint = did_you_mean(str(name_or_path), grid_names())
        raise ProtoPFaithError(f"There is no search space {name_or_path}; {hint}")
    values = parse_mapping(text, f"The search space {name_or_path}")
    if "recipe" not in values:
        raise ProtoPFaithError(f"The search space {name_or_path} names no recipe; add a line recipe: NAME.")
    grid = from_dict(Grid, values)
    for key, values in grid.search.items():
        if not isinstance(values, list) or not values:
            raise ProtoPFaithError(
                f"The search's {key!r} must be a list of values to try, not {shown(values)}."
            )
    points = math.prod(len(values) for values in grid.search.values())
    if points > MOST_POINTS:
        raise ProtoPFaithError(
            f"The search space {name_or_path} has {points:,} points, more than {MOST_POINTS:,}; try fewer "
            "values."
        )
    return grid
