"""What an XProtoNet does otherwise: its one activation, and pruning without merging."""

from __future__ import annotations

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import XProtoNet
from protopfaith.training import build_model, load_recipe
from protopfaith.training.families.xprotonet import XProtoNetTrainer

SMALL = ["data.size=[32,32]", "data.options={train: 8, validation: 8, test: 8}"]


def test_a_recipe_without_activation_means_the_only_one() -> None:
    data = load_data("birds_multilabel", size=32, train=32, validation=32, test=32)
    model = build_model(load_recipe("birds_multilabel", [*SMALL, "model.activation=relu1"]), data)
    assert model.activation == "unit"
    with pytest.raises(ProtoPFaithError, match="activation 'unit'"):
        build_model(load_recipe("birds_multilabel", [*SMALL, "model.activation=sigmoid"]), data)


def test_none_speaks_for_another_that_goes() -> None:
    model = XProtoNet("small", ["edema", "mass"], 4, 8).eval()
    smaller, dropped = XProtoNetTrainer.pruned(model, [1], None, None)
    assert dropped == (1,)
    assert isinstance(smaller, XProtoNet)
    kept = [0, *range(2, 8)]
    assert torch.equal(smaller.classifier.weight, model.classifier.weight[:, kept])
    with pytest.raises(ProtoPFaithError, match="has no leaves"):
        XProtoNetTrainer.pruned(model, None, None, 0.1)
