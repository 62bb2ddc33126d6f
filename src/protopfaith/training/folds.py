"""Folds: which of a data set's five there are, and the recipe of each."""

from __future__ import annotations

from collections.abc import Sequence

from protopfaith.arguments import whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.training.recipe import Recipe, recipe_from_dict

FOLDS = (0, 1, 2, 3, 4)


def of_fold(recipe: Recipe, fold: int) -> Recipe:
    """The recipe for one fold."""
    values = recipe.to_dict()
    values["data"]["fold"] = fold
    return recipe_from_dict(values)


def check_folds(folds: Sequence[int]) -> None:
    """Raises before the first training if a later one could not be."""
    for fold in folds:
        whole_number(fold, "A fold", least=FOLDS[0], most=FOLDS[-1])
    numbers = [int(fold) for fold in folds]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ProtoPFaithError(f"Every fold is trained once, but got {numbers}; name each once.")
