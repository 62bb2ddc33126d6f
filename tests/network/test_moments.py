from __future__ import annotations

import torch

from protopfaith.moments import Gaussian
from protopfaith.network import minimum_over_positions, squared_distances


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
