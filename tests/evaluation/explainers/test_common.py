from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import Explained, Prepared, density, network_of, selected_distances
from protopfaith.evaluation.explainers.common import Explainers, Options
from protopfaith.evaluation.metrics.variants import Combined
from protopfaith.network import ProtoPNet, XProtoNet
from protopfaith.shapley import Players


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


@pytest.mark.parametrize("autocast", [False, True])
def test_a_prepared_network_has_the_same_distances(model, image, autocast) -> None:
    prepared = Prepared(model)
    batch = torch.stack([image, image * 0.5])
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for chosen in ([2, 0], [1]):
            found = selected_distances(prepared, chosen)(batch).float()
            expected = selected_distances(model, chosen)(batch).float()
            size = float(model.distances(batch).max())
            assert torch.allclose(found, expected, rtol=0, atol=(0.05 if autocast else 1e-4) * size)


def test_a_prepared_network_gives_gradients(model, image) -> None:
    batch = image[None].clone().requires_grad_()
    selected_distances(Prepared(model), [0])(batch).sum().backward()
    assert bool(batch.grad.any())


@pytest.mark.parametrize("prepared", [False, True])
@torch.no_grad()
def test_selected_distances_of_a_network_that_pools(prepared: bool) -> None:
    torch.manual_seed(0)
    model = XProtoNet("small", ["edema", "mass"], 4, 8).eval()
    x = torch.rand(2, 3, 32, 32)
    found = selected_distances(Prepared(model) if prepared else model, [6, 1])(x)
    assert torch.allclose(found, model.distances(x)[:, [6, 1]], atol=1e-5)


def test_an_explainer_of_somebody_else_that_gives_nothing_is_told_as_that() -> None:
    known = Explainers("explainer")
    known.register("mine")(lambda model, image, prototypes, options: None)  # type: ignore[arg-type,return-value]
    network = ProtoPNet("small", 2, 1, 8).eval()
    options = Options(Players.windows((32, 32), 16))
    with pytest.raises(ProtoPFaithError, match="'mine' gives must be an Explained, not None"):
        known["mine"](network, torch.zeros(3, 32, 32), [0], options)
    known.register("hasty")(lambda model, image, prototypes, options: {}["map"])  # type: ignore[arg-type]
    with pytest.raises(ProtoPFaithError, match="The explainer 'hasty' fails with KeyError: 'map'"):
        known["hasty"](network, torch.zeros(3, 32, 32), [0], options)
