"""What was understood of a network becomes one of ours."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.conversion import ForeignNetwork
from protopfaith.conversion.foreign import build, check_owners, plain_numbers
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet, ProtoTree, build_encoder
from protopfaith.network.branches import Branches


def test_prototypes_are_sorted_by_class_with_their_weights(network: ForeignNetwork) -> None:
    model = build(network, ["a", "b"])
    assert isinstance(model, ProtoPNet)
    assert not model.training
    assert model.prototype_classes.tolist() == [0, 0, 1, 1]
    assert torch.equal(model.prototypes, network.prototypes[[1, 3, 0, 2]])
    assert torch.equal(model.classifier.weight, network.weights[:, [1, 3, 0, 2]])


def test_it_computes_what_its_parts_say(network: ForeignNetwork) -> None:
    """Encoder, Z and distances one after the other, with the prototypes in their own order."""
    x = torch.rand(2, 3, 48, 48)
    encoder = build_encoder("small")
    encoder.load_state_dict(network.encoder_state)
    (first, bias), (second, other) = network.convolutions
    with torch.no_grad():
        z = torch.conv2d(encoder.eval()(x), first, bias).relu()
        z = torch.conv2d(z, second, other).sigmoid()
        away = (z[:, None] - network.prototypes[None, :, :, None, None]).square().sum(2)
        distances = away.flatten(2).min(2).values
        logits = torch.log((distances + 1) / (distances + 1e-4)) @ network.weights.T
        torch.testing.assert_close(build(network, ["a", "b"])(x), logits, rtol=1e-4, atol=1e-4)


def test_a_tree_keeps_its_nodes_and_leaves(network: ForeignNetwork) -> None:
    shape = ProtoTree("small", ["a", "b"], depth=2, prototype_channels=8).config["tree"]
    nodes = len(shape)
    leaves = torch.randn(nodes + 1, 2)
    tree = replace(
        network,
        prototypes=torch.rand(nodes, 8),
        owners=torch.full((nodes,), -1),
        weights=torch.zeros(2, 0),
        similarity="exponential",
        epsilon=None,
        branches=Branches(shape),
        leaves=leaves,
    )
    model = build(tree, ["a", "b"])
    assert isinstance(model, ProtoTree)
    assert torch.equal(model.prototypes, tree.prototypes)
    assert torch.equal(model.leaves, leaves)


@pytest.mark.parametrize("place", [0, 1], ids=["weights", "bias"])
def test_tensors_of_another_shape_are_refused(place: int, network: ForeignNetwork) -> None:
    first, second = (list(pair) for pair in network.convolutions)
    second[place] = second[place][:1]  # which torch would stretch
    wrong = replace(network, convolutions=[tuple(first), tuple(second)])
    with pytest.raises(ProtoPFaithError, match=r"of shape \(1,.* where \(8,"):
        build(wrong, ["a", "b"])


def test_numbers_become_float32_and_others_are_refused() -> None:
    kinds = (torch.bool, torch.int8, torch.float16, torch.bfloat16, torch.float64)
    found = plain_numbers({str(kind): torch.ones(2, dtype=kind) for kind in kinds}, "a.pth")
    assert all(values.dtype == torch.float32 and values.tolist() == [1, 1] for values in found.values())
    for odd in (torch.ones(2) * 1j, torch.eye(2).to_sparse(), torch.ones(2, device="meta")):
        with pytest.raises(ProtoPFaithError, match=r"'x' in a\.pth is .*real numbers"):
            plain_numbers({"x": odd}, "a.pth")


def test_every_class_needs_a_prototype(network: ForeignNetwork) -> None:
    check_owners(network.owners, 2, "a.pth")
    with pytest.raises(ProtoPFaithError, match=r"The classes 2, 4 of a\.pth have no prototype"):
        check_owners(torch.tensor([0, 3, 1, 0]), 5, "a.pth")
