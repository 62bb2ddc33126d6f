"""Staged training of prototype networks: recipes, losses, schedule, projection, the loop, run folders."""

from protopfaith.training import families  # noqa: F401  (for the trainers that they register)
from protopfaith.training.family import TRAINERS
from protopfaith.training.launch import build_model, train
from protopfaith.training.loop import Trainer
from protopfaith.training.projection import count_distinct, project
from protopfaith.training.pruning import PruningReport, prune_run
from protopfaith.training.recipe import Recipe, load_recipe, recipe_names, recipe_summary
from protopfaith.training.run import Run
from protopfaith.training.search import grid_names, load_grid, train_folds, train_grid
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
