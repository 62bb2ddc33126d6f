"""Settings of a recipe that would change nothing: told before a new run, while old ones still load. Without
torch: a recipe is read at once."""

from __future__ import annotations

from dataclasses import fields

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import TreeRecipe

FAMILIES = ("protopnet", "xprotonet")
"""Those without a tree. Others, of whoever reads this, know best what they read."""


def check_used(recipe: Recipe) -> None:
    """Raises if a recipe has values that its network does not use, or that contradict each other.

    >>> from protopfaith.training import load_recipe
    >>> check_used(load_recipe("birds"))
    """
    usual = TreeRecipe()
    for field in fields(usual):
        value = getattr(recipe.tree, field.name)
        if recipe.model.family in FAMILIES and value != getattr(usual, field.name):
            raise ProtoPFaithError(
                f"tree.{field.name}={shown(value)} is for trees, but the network is of the family "
                f"{recipe.model.family}; leave it out, or set model.family=prototree."
            )
    hide = recipe.augmentation.hide
    if hide.smallest > hide.largest:
        raise ProtoPFaithError(
            f"augmentation.hide.smallest={hide.smallest} is more than augmentation.hide.largest="
            f"{hide.largest}; exchange them, or set the other one, too."
        )
