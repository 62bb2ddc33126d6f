"""Folds of a recipe."""

from __future__ import annotations

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import load_recipe
from protopfaith.training.folds import FOLDS, check_folds, of_fold


def test_a_recipe_differs_by_its_fold_alone() -> None:
    recipe = load_recipe("birds")
    for fold in FOLDS:
        own = of_fold(recipe, fold)
        assert own.data.fold == fold
        assert {**own.to_dict(), "data": None} == {**recipe.to_dict(), "data": None}


def test_every_fold_is_named_once() -> None:
    check_folds([0, 4])
    for wrong in ([], [0, 0], [5], [-1]):
        with pytest.raises(ProtoPFaithError):
            check_folds(wrong)
