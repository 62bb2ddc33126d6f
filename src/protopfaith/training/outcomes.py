"""Whether images, network and recipe agree on what an image may show: one class, or several findings."""

from __future__ import annotations

from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import FAMILIES, outcome_of
from protopfaith.training.recipe import Recipe


def check_outcome(outcome: str, model: nn.Module, recipe: Recipe) -> None:
    """Raises if data and network do not agree on what an image may show, or if the recipe asks for what the
    network does not have, or for what is made for classes alone."""
    if outcome != outcome_of(model):
        raise _disagreement(outcome, model)
    if not hasattr(model, "occurrence_maps"):
        for name in ("occurrence", "consistency"):
            if getattr(recipe.costs, name):
                raise ProtoPFaithError(
                    f"costs.{name} is for networks with occurrence maps (model.family=xprotonet); set it "
                    "to 0."
                )
    if outcome == "several":
        _check_several(recipe)


def _disagreement(outcome: str, model: nn.Module) -> ProtoPFaithError:
    name = type(model).__name__
    if outcome != "several":
        return ProtoPFaithError(
            f"{name} decides on findings that are there or not, but these images have one class each; "
            "choose another model.family, or data with findings."
        )
    able = " or ".join(family for family, kind in FAMILIES.items() if outcome_of(kind) == "several")
    return ProtoPFaithError(
        f"These images show several findings, but {name} decides for one class; set model.family={able}."
    )


def _check_several(recipe: Recipe) -> None:
    for name in ("individual", "companion", "places", "label_smoothing"):
        if getattr(recipe.costs, name):
            raise ProtoPFaithError(f"costs.{name} is made for one class per image; set it to 0 for findings.")
    if recipe.schedule.pretraining.probe:
        raise ProtoPFaithError(
            "schedule.pretraining.probe is made for one class per image; set it to false for findings."
        )
