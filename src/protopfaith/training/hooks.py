"""What a family may do differently in training: each hook, by default, does what ProtoPNet does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import FAMILIES, PatchNetwork
from protopfaith.training.batches import ImageBatches
from protopfaith.training.dropping import without_prototypes
from protopfaith.training.initialization import patch_prototypes
from protopfaith.training.outcomes import check_outcome
from protopfaith.training.projection import project_patches
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import ScheduleRecipe
from protopfaith.training.schedule import Stage, make_stages

if TYPE_CHECKING:
    import torch


ELSEWHERE = {"prototypes_per_class", "similarity"}
"""What recipes have a key of its own for."""


class Hooks:
    """What is asked of a family beside the training itself; a `Trainer` has these, too."""

    last_part: ClassVar[str] = "F"  # what learns after projection, as people call it
    learns_from_copies: ClassVar[bool] = False  # whether objectives know of more images than labels

    @classmethod
    def build(cls, recipe: Recipe, data: ImageData) -> PatchNetwork:
        """The recipe's network for the data's classes.

        Args:
            recipe: names encoder, prototypes and options
            data: has the classes and the number of channels
        """
        model, family = recipe.model, FAMILIES[recipe.model.family]
        return cls.construct(family, recipe, data, model.prototypes_per_class, **own_options(recipe))

    @staticmethod
    def construct(family: Any, recipe: Recipe, data: ImageData, count: int, **options: Any) -> PatchNetwork:
        """A network by its class, with what the recipe says for all families.

        Args:
            family: the class
            recipe: names encoder, channels and activation
            data: has the classes and the number of channels
            count: of prototypes per class, or what the family has in its place
            options: of the family alone; also `activation`, in the place of the recipe's
        """
        model = recipe.model
        common = {
            "in_channels": data.preprocessing.channels,
            "activation": model.activation,
            "weights": model.weights,
        }
        if "similarity" in family.header:
            common["similarity"] = model.similarity
        classes = list(data.classes)
        return family(model.encoder, classes, count, model.prototype_channels, **{**common, **options})

    @classmethod
    def check(cls, model: PatchNetwork, recipe: Recipe, data: ImageData) -> None:
        """Raises if network, recipe and images do not fit, before anything is trained.

        Args:
            model: the network
            recipe: how it would be trained
            data: on what
        """
        check_outcome(data.outcome, model, recipe)
        # Each trainer says it for itself: the objectives of one made from another may be others.
        if recipe.augmentation.hide.copies and not vars(cls).get("learns_from_copies"):
            raise ProtoPFaithError(
                f"A {type(model).__name__} does not learn from copies with hidden regions; set "
                "augmentation.hide.copies=false, which hides them in the images themselves."
            )

    @classmethod
    def stages_of(cls, schedule: ScheduleRecipe, images: int) -> list[Stage]:
        """Every stage of a run, in order.

        Args:
            schedule: the recipe's
            images: how many there are to train on
        """
        return make_stages(schedule, images)

    @staticmethod
    def start(
        model: Any,
        batches: ImageBatches,
        preprocessing: Preprocessing,
        generator: torch.Generator,
        head: nn.Linear | None = None,
    ) -> Tensor:
        """The prototypes (P, L) that training starts from, where they do not start at random.

        Args:
            model: the network
            batches: the training images, by index
            preprocessing: how they are prepared
            generator: of random choices
            head: of the plain classifier, where prototypes should start on what it finds telling
        """
        return patch_prototypes(model, batches, preprocessing, generator, head)

    @staticmethod
    def project(
        model: Any, batches: ImageBatches, images: ImageSet, preprocessing: Preprocessing, **how: Any
    ) -> None:
        """Makes prototypes parts of training images, in place, and records their sources.

        Args:
            model: changed in place
            batches: the training images, by index
            images: what is known of them
            preprocessing: how they are prepared
            how: the other arguments of `protopfaith.training.project`
        """
        project_patches(model, batches, images, preprocessing, **how)

    @classmethod
    def pruned(
        cls, model: Any, drop: Sequence[int] | None, tolerance: float | None, leaves: float | None
    ) -> tuple[PatchNetwork, tuple[int, ...]]:
        """A copy of a network without some of its prototypes, and which went.

        Args:
            model: it stays as it is
            drop: indices of those that go; None: all but one of equal ones
            tolerance: squared distance up to which two are equal; None: what rounding leaves of zero
            leaves: for trees alone
        """
        if leaves is not None:
            raise ProtoPFaithError(
                f"The network is a {type(model).__name__} and has no leaves to prune; leave out --leaves, "
                "and name prototypes to drop where not all duplicates are meant."
            )
        return without_prototypes(model, drop, tolerance)


def own_options(recipe: Recipe) -> dict[str, Any]:
    """`model.options`, if the family takes them: they are what its `header` names."""
    family: Any = FAMILIES[recipe.model.family]
    taken = set(family.header) - ELSEWHERE
    unknown = sorted(set(recipe.model.options) - taken)
    if unknown:
        raise ProtoPFaithError(
            f"model.options has {unknown[0]!r}, which the family {recipe.model.family} does not take; it "
            f"takes {', '.join(sorted(taken)) or 'none'}."
        )
    return dict(recipe.model.options)
