"""Staged training of prototype networks: recipes, losses, schedule, projection, the loop, run folders."""

from protopfaith.training.projection import count_distinct, project
from protopfaith.training.recipe import Recipe, load_recipe, recipe_names
from protopfaith.training.run import Run
from protopfaith.training.train import build_model, train

__all__ = [
    "Recipe",
    "Run",
    "build_model",
    "count_distinct",
    "load_recipe",
    "project",
    "recipe_names",
    "train",
]
