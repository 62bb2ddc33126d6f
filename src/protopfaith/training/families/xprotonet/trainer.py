"""Training of an XProtoNet (Kim et al., 2021): as of a ProtoPNet, on findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import FAMILIES, PatchNetwork
from protopfaith.training.batches import ImageBatches
from protopfaith.training.dropping import without_prototypes
from protopfaith.training.families.xprotonet.objectives import findings_objective
from protopfaith.training.families.xprotonet.projection import project_seen, seen_prototypes
from protopfaith.training.family import TRAINERS
from protopfaith.training.hooks import own_options
from protopfaith.training.loop import Trainer
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import ModelRecipe
from protopfaith.training.schedule import Stage


@TRAINERS.register("xprotonet")
class XProtoNetTrainer(Trainer):
    """Runs the stages of a recipe on an XProtoNet."""

    @classmethod
    def build(cls, recipe: Recipe, data: ImageData) -> PatchNetwork:
        """The recipe's network; it has one activation alone, which a recipe that says nothing means."""
        model = recipe.model
        activation = "unit" if model.activation == ModelRecipe().activation else model.activation
        options = {"activation": activation, **own_options(recipe)}
        return cls.construct(FAMILIES[model.family], recipe, data, model.prototypes_per_class, **options)

    @classmethod
    def check(cls, model: PatchNetwork, recipe: Recipe, data: ImageData) -> None:
        """Raises also if a finding has one prototype alone."""
        super().check(model, recipe, data)
        if recipe.model.prototypes_per_class < 2:
            raise ProtoPFaithError(
                "A finding needs at least two prototypes, one for its presence and one for its absence; "
                "raise model.prototypes_per_class."
            )

    @staticmethod
    def start(
        model: Any,
        batches: ImageBatches,
        preprocessing: Preprocessing,
        generator: torch.Generator,
        head: nn.Linear | None = None,
    ) -> Tensor:
        """Prototypes start on what they see of whole images."""
        return seen_prototypes(model, batches, preprocessing, generator)

    @staticmethod
    def project(
        model: Any, batches: ImageBatches, images: ImageSet, preprocessing: Preprocessing, **how: Any
    ) -> None:
        """Prototypes become what they see of images that they stand for."""
        project_seen(model, batches, images, preprocessing, **how)

    @classmethod
    def pruned(
        cls, model: Any, drop: Sequence[int] | None, tolerance: float | None, leaves: float | None
    ) -> tuple[PatchNetwork, tuple[int, ...]]:
        """Equal prototypes see different things: none speaks for another that goes."""
        if leaves is not None:
            return super().pruned(model, drop, tolerance, leaves)
        return without_prototypes(model, drop, tolerance, merged=False)

    def objective(self, stage: Stage) -> nn.Module:
        """What a stage minimizes on images with several findings."""
        return findings_objective(stage.name, self.model, self.head, self.recipe, **self._told())
