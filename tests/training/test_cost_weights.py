"""The weights of the costs are part of a recipe."""

from __future__ import annotations

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training.cost_weights import CostWeights
from protopfaith.training.recipe import load_recipe, recipe_from_dict


def test_the_defaults_are_the_papers() -> None:
    weights = CostWeights()
    assert (weights.cluster, weights.separation, weights.per_prototype) == (0.5, 0.5, False)
    extra = ("diversity", "individual", "places", "companion", "l1", "label_smoothing", "occurrence")
    assert not any(getattr(weights, name) for name in extra)


def test_a_recipe_gives_them_within_bounds() -> None:
    assert load_recipe("birds", ["costs.cluster=0.25"]).costs.cluster == 0.25
    with pytest.raises(ProtoPFaithError, match=r"'costs\.places' must be at least 0"):
        recipe_from_dict({"costs": {"places": -1}})
