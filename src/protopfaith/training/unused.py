"""Settings of a recipe that would change nothing: told before a new run, while old ones still load. Without
torch: a recipe is read at once."""

from __future__ import annotations

from dataclasses import fields

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import TreeRecipe

LEAST_SCALE = 0.01  # of an augmented image: a hundredth of each side
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
    _check_costs(recipe)
    model = recipe.model
    if model.otherwise is not None and model.weights != "imagenet":
        raise ProtoPFaithError(
            f"model.otherwise={model.otherwise} is for where the weights imagenet cannot be had, but "
            f"model.weights is {shown(model.weights)}; leave it out, or set model.weights=imagenet."
        )
    smallest = recipe.augmentation.scale[0]
    if smallest < LEAST_SCALE:
        raise ProtoPFaithError(
            f"augmentation.scale begins at {smallest:g}, which leaves nothing of an image; begin at "
            f"{LEAST_SCALE} or more."
        )
    hide = recipe.augmentation.hide
    if hide.smallest > hide.largest:
        raise ProtoPFaithError(
            f"augmentation.hide.smallest={hide.smallest} is more than augmentation.hide.largest="
            f"{hide.largest}; exchange them, or set the other one, too."
        )


def _check_costs(recipe: Recipe) -> None:
    """Raises if a cost is turned into its opposite, or nothing is left of the labels."""
    for name, value in vars(recipe.costs).items():
        if value < 0:
            raise ProtoPFaithError(
                f"costs.{name}={value:g} would reward what that cost is against; give zero or more."
            )
    smoothings = {
        "costs": recipe.costs.label_smoothing,
        "schedule.pretraining": recipe.schedule.pretraining.label_smoothing,
    }
    for section, value in smoothings.items():
        if value >= 1:
            raise ProtoPFaithError(
                f"{section}.label_smoothing={value:g} leaves nothing of the labels; give less than one."
            )
