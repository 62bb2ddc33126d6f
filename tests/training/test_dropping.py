"""Which prototypes may go, and that those that stay speak for their equals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet, ProtoTree
from protopfaith.training.dropping import prototypes_to_drop, without_prototypes


@pytest.fixture
def model() -> ProtoPNet:
    torch.manual_seed(0)
    model = ProtoPNet("small", ["cat", "dog"], 2, 4).eval()
    model.prototypes.data[1] = model.prototypes.data[0]
    return model


def test_a_repeat_goes_and_no_logit_changes(model: ProtoPNet) -> None:
    smaller, dropped = without_prototypes(model, None, None)
    assert dropped == (1,)
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(smaller(x), model(x), atol=1e-4)


def test_without_merging_what_is_left_has_its_own_weights(model: ProtoPNet) -> None:
    smaller: Any = without_prototypes(model, [1], None, merged=False)[0]
    assert torch.equal(smaller.classifier.weight, model.classifier.weight[:, [0, 2, 3]])


@pytest.mark.parametrize(
    ("drop", "words"),
    [([9], "indices from 0 to 3"), ([], "indices from 0 to 3"), ("1", "a list of numbers")],
)
def test_what_cannot_go_is_told(model: ProtoPNet, drop: Any, words: str) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        prototypes_to_drop(model, drop, None)


def test_of_a_tree_no_single_ones_go() -> None:
    with pytest.raises(ProtoPFaithError, match="no single prototypes can be dropped"):
        without_prototypes(ProtoTree("small", 2, 2, 4), [0], None)


@pytest.mark.parametrize(("drop", "tolerance"), [([0], 0.5), ([0, 1, 0], None)])
def test_what_goes_is_said_once(model: ProtoPNet, drop: list[int], tolerance: float | None) -> None:
    with pytest.raises(ProtoPFaithError, match=r"give one of them|name each of them once"):
        prototypes_to_drop(model, drop, tolerance)
