from __future__ import annotations

import pytest
import torch

from protopfaith.moments import Gaussian
from protopfaith.network import ProtoPNet, minimum_over_positions, squared_distances, unit_vectors


def test_distances_of_random_vectors_have_the_moments_of_many_draws() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, variance = torch.rand(1, 5, 2, 2, generator=generator), torch.rand(1, 5, 2, 2, generator=generator)
    prototypes = torch.rand(3, 5, generator=generator)
    found = squared_distances(Gaussian(mean, variance), prototypes)
    noise = torch.randn(200_000, 5, 2, 2, generator=generator)
    drawn = squared_distances(mean + variance.sqrt() * noise, prototypes)
    assert torch.allclose(found.mean, drawn.mean(0, keepdim=True), rtol=0.02)
    assert torch.allclose(found.variance, drawn.var(0, keepdim=True), rtol=0.05)


def test_without_variance_they_are_the_plain_ones() -> None:
    z, prototypes = torch.rand(2, 4, 3, 3), torch.rand(3, 4)
    certain = Gaussian(z, torch.zeros_like(z))
    maps = squared_distances(certain, prototypes)
    assert torch.allclose(maps.mean, squared_distances(z, prototypes), atol=1e-5)
    assert float(maps.variance.abs().max()) < 1e-6
    smallest = minimum_over_positions(maps)
    assert torch.allclose(smallest.mean, minimum_over_positions(squared_distances(z, prototypes)), atol=1e-5)


@pytest.mark.parametrize("spread", [0.1, 0.3, 1.0])
def test_directions_of_random_vectors_are_near_those_of_many_draws(spread) -> None:
    """There is no closed form; what the approximation leaves out is measured here, also in the distances."""
    generator = torch.Generator().manual_seed(0)
    channels = 32
    mean = torch.randn(1, channels, 1, 1, generator=generator)
    variance = spread**2 * 2 * torch.rand(1, channels, 1, 1, generator=generator)
    factors = spread * torch.randn(2, 1, channels, 1, 1, generator=generator)
    z = Gaussian(mean, variance + factors.square().sum(0), factors)
    common = torch.randn(100_000, 2, generator=generator)
    noise = torch.randn(100_000, channels, generator=generator)[..., None, None]
    drawn = mean + variance.sqrt() * noise
    drawn = drawn + torch.einsum("nk,kblhw->nlhw", common, factors)
    found, truth = unit_vectors(z), unit_vectors(drawn)
    assert float((found.mean - truth.mean(0)).norm()) < 0.1 * spread
    assert torch.allclose(found.variance.sum(), truth.var(0).sum(), rtol=0.25)
    length = found.mean.square().sum(1) + found.variance.sum(1)
    assert torch.allclose(length, torch.ones_like(length))  # as long as a direction is, in the mean
    prototypes = torch.nn.functional.normalize(torch.randn(8, channels, generator=generator), dim=1)
    distances = squared_distances(truth, prototypes)
    approximate = squared_distances(found, prototypes)
    assert torch.allclose(approximate.mean, distances.mean(0, keepdim=True), atol=0.1 * spread)
    ratio = approximate.variance.sqrt() / distances.std(0)
    assert 0.8 < float(ratio.min()) <= float(ratio.max()) < 1.25


def test_directions_without_variance_are_exact() -> None:
    z = torch.randn(2, 6, 3, 3)
    found = unit_vectors(Gaussian(z, torch.zeros_like(z), torch.zeros(2, *z.shape)))
    assert torch.allclose(found.mean, unit_vectors(z), atol=1e-6)
    assert float(found.variance.max()) == 0
    zero = unit_vectors(Gaussian(torch.zeros(1, 3, 1, 1), 0.0))
    assert torch.equal(zero.mean, torch.zeros(1, 3, 1, 1))


def test_a_network_on_the_unit_sphere_runs_on_random_variables() -> None:
    torch.manual_seed(0)
    model = ProtoPNet("small", 2, 2, 16, activation="unit").eval()
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        found = model.distances(Gaussian(x, torch.zeros_like(x)))
        assert torch.allclose(found.mean, model.distances(x), atol=1e-4)
