from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ACTIVATIONS, SIMILARITIES
from protopfaith.network.layers import feature_layers, own_class_weights


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
    with pytest.raises(ProtoPFaithError, match="Known: relu, relu1, sigmoid"):
        feature_layers(3, 3, "relu2")
