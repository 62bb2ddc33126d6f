from __future__ import annotations

import pytest
import torch

from protopfaith.evaluation.explainers import Explained, density, network_of, selected_distances
from protopfaith.evaluation.metrics.variants import Combined


def test_a_density_adds_up_to_the_values(players) -> None:
    values = torch.rand(3, len(players), dtype=torch.float64)
    maps = density(values, players)
    assert torch.allclose(Explained(maps, shares=True).values(players), values)
    assert torch.allclose(maps.sum((-2, -1)), values.sum(-1))


@pytest.mark.parametrize("rewritten", [False, True])
def test_selected_distances_are_columns_of_all(model, image, rewritten) -> None:
    network = Combined(model, torch.eye(4)) if rewritten else model
    with torch.no_grad():
        found = selected_distances(network, [2, 0])(image[None])
        assert torch.allclose(found, network.distances(image[None])[:, [2, 0]], atol=1e-5)
    assert network_of(network) is model


def test_without_known_errors_they_are_zero(players) -> None:
    errors = Explained(torch.ones(2, *players.image_size), shares=False).standard_errors(players)
    assert errors.shape == (2, len(players))
    assert not errors.any()
