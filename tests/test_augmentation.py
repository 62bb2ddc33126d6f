"""What may happen to training images, as a recipe says it."""

from __future__ import annotations

import pytest

from protopfaith.augmentation import Augmentation, Hiding
from protopfaith.errors import ProtoPFaithError
from protopfaith.training.recipe import recipe_from_dict


def test_a_recipe_gives_it_within_bounds() -> None:
    recipe = recipe_from_dict({"augmentation": {"rotation": 15, "hide": {"share": 0.5}}})
    assert recipe.augmentation == Augmentation(rotation=15.0, hide=Hiding(share=0.5))
    with pytest.raises(ProtoPFaithError, match=r"'augmentation\.flip' must be at most 1"):
        recipe_from_dict({"augmentation": {"flip": 2}})


def test_scales_go_upward() -> None:
    with pytest.raises(ProtoPFaithError, match="from the smaller to the larger"):
        Augmentation(scale=(1.2, 0.8))


def test_copies_need_a_share_of_images() -> None:
    assert not Hiding(share=0.5).copies
    with pytest.raises(ProtoPFaithError, match=r"hide\.share=0 makes none; set the share"):
        recipe_from_dict({"augmentation": {"hide": {"copies": True}}})
    with pytest.raises(ProtoPFaithError, match=r"did you mean .*copies"):
        recipe_from_dict({"augmentation": {"hide": {"copy": True, "share": 0.5}}})
