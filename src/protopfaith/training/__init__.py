"""Staged training of prototype networks: recipes, losses, schedule, projection, the loop, run folders.

The names below are loaded when they are first used: a mistake in a recipe is told without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protopfaith.lazy import lazily

if TYPE_CHECKING:
    from protopfaith.training.family import TRAINERS
    from protopfaith.training.grid import grid_names, load_grid
    from protopfaith.training.launch import build_model, train
    from protopfaith.training.loop import Trainer
    from protopfaith.training.projection import count_distinct, project
    from protopfaith.training.pruning import PruningReport, prune_run
    from protopfaith.training.recipe import Recipe, load_recipe, recipe_names, recipe_summary
    from protopfaith.training.run import Run
    from protopfaith.training.search import train_folds, train_grid
    from protopfaith.training.thresholds import FindingRule

__all__ = [
    "TRAINERS",
    "FindingRule",
    "PruningReport",
    "Recipe",
    "Run",
    "Trainer",
    "build_model",
    "count_distinct",
    "grid_names",
    "load_grid",
    "load_recipe",
    "project",
    "prune_run",
    "recipe_names",
    "recipe_summary",
    "train",
    "train_folds",
    "train_grid",
]

_HOMES = {
    "FindingRule": "thresholds",
    "PruningReport": "pruning",
    "Recipe": "recipe",
    "Run": "run",
    "TRAINERS": "family",
    "Trainer": "loop",
    "build_model": "launch",
    "count_distinct": "projection",
    "grid_names": "grid",
    "load_grid": "grid",
    "load_recipe": "recipe",
    "project": "projection",
    "prune_run": "pruning",
    "recipe_names": "recipe",
    "recipe_summary": "recipe",
    "train": "launch",
    "train_folds": "search",
    "train_grid": "search",
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
