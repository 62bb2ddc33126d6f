from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ACTIVATIONS, SIMILARITIES
from protopfaith.network.layers import (
    feature_layers,
    own_class_weights,
    similarity_function,
    stacked_layers,
)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations_start_alive(name):
    """At the start few latent values sit at an end of the activation's range, where gradients vanish."""
    torch.manual_seed(0)
    z = feature_layers(64, 32, name)(torch.rand(4, 64, 5, 5))
    assert z.shape == (4, 32, 5, 5)
    if name == "unit":
        assert torch.allclose(z.square().sum(1), torch.ones(4, 5, 5), atol=1e-5)
        return
    assert (z >= 0).all()
    assert name == "relu" or (z <= 1).all()
    alive = (z > 0) & ((z < 1) | (name == "relu"))
    assert alive.float().mean() > 0.25


def test_relu1_clips():
    values = torch.tensor([-2.0, 0.0, 0.3, 1.0, 7.0])
    assert torch.equal(ACTIVATIONS["relu1"]()(values), torch.tensor([0.0, 0.0, 0.3, 1.0, 1.0]))


@pytest.mark.parametrize("name", sorted(SIMILARITIES))
def test_similarity_falls_with_distance(name):
    distances = torch.linspace(0, 50, 200)
    assert (SIMILARITIES[name](distances).diff() < 0).all()


def test_log_similarity():
    s = torch.tensor([0.0, 1.0])
    torch.testing.assert_close(SIMILARITIES["log"](s), torch.log((s + 1) / (s + 1e-4)))


def test_own_class_weights():
    weights = own_class_weights(torch.tensor([0, 0, 1]), 2)
    assert weights.tolist() == [[1, 1, -0.5], [-0.5, -0.5, 1]]


def test_unknown_activation():
    with pytest.raises(ProtoPFaithError, match=r"[Kk]nown: relu, relu1, sigmoid"):
        feature_layers(3, 3, "relu2")


def test_z_of_another_shape_is_what_its_list_says():
    z = stacked_layers(6, [4, "relu", 2, "sigmoid"])
    x = torch.randn(2, 6, 3, 3)
    slow = torch.relu(torch.einsum("oi,bihw->bohw", z[0].weight[:, :, 0, 0], x) + z[0].bias[:, None, None])
    slow = torch.einsum("oi,bihw->bohw", z[2].weight[:, :, 0, 0], slow) + z[2].bias[:, None, None]
    assert torch.allclose(z(x), slow.sigmoid(), atol=1e-6)
    assert torch.equal(stacked_layers(6, [])(x), x)


@pytest.mark.parametrize("layers", ["relu", [0], [-3], [2.5], ["softmux"], [True], [10**9], [1] * 65, None])
def test_layers_that_are_none_raise(layers):
    with pytest.raises(ProtoPFaithError):
        stacked_layers(6, layers)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1.0, float("nan"), float("inf")])
def test_an_epsilon_lies_between_zero_and_one(epsilon):
    with pytest.raises(ProtoPFaithError, match="epsilon"):
        similarity_function("log", epsilon)


def test_the_linear_similarity_has_no_epsilon():
    with pytest.raises(ProtoPFaithError, match="no epsilon"):
        similarity_function("linear", 1e-3)
