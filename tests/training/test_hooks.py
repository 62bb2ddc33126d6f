"""What a recipe sets of a family, and ProtoPNet's way of pruning."""

from __future__ import annotations

import pytest

from protopfaith.data import load_data
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet
from protopfaith.training import Trainer, build_model, load_recipe
from protopfaith.training.family import trainer_named
from protopfaith.training.hooks import own_options

SMALL = ["data.size=[32,32]", "data.options={train: 8, validation: 8, test: 8}"]


def test_options_of_a_family_reach_its_network() -> None:
    recipe = load_recipe("birds", [*SMALL, "model.similarity=log", "model.options={epsilon: 0.01}"])
    model = build_model(recipe, load_data("birds", size=32, train=8, validation=8, test=8))
    assert isinstance(model, ProtoPNet)
    assert (model.similarity, model.epsilon) == ("log", 0.01)


@pytest.mark.parametrize("options", ["{depth: 3}", "{similarity: log}"])
def test_options_that_a_family_does_not_take_are_refused(options: str) -> None:
    with pytest.raises(ProtoPFaithError, match=r"the family protopnet does not take; it takes epsilon\."):
        own_options(load_recipe("birds", [f"model.options={options}"]))


@pytest.mark.parametrize("family", ["prototree", "xprotonet"])
def test_families_that_do_not_learn_from_copies_say_so(family: str) -> None:
    name = "birds_multilabel" if family == "xprotonet" else "birds"
    copies = ["augmentation.hide.share=0.5", "augmentation.hide.copies=true", f"model.family={family}"]
    data = load_data(name, size=32, train=32, validation=8, test=32)
    recipe = load_recipe(name, copies)
    trainer = trainer_named(family)
    with pytest.raises(
        ProtoPFaithError, match=r"does not learn from copies .* set augmentation\.hide\.copies"
    ):
        trainer.check(trainer.build(recipe, data), recipe, data)


def test_leaves_are_for_trees() -> None:
    with pytest.raises(ProtoPFaithError, match="has no leaves to prune"):
        Trainer.pruned(ProtoPNet("small", 2, 1, 4), None, None, 0.1)
