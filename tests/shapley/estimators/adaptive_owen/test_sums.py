import torch

from protopfaith.shapley.densities import membership_weights
from protopfaith.shapley.estimators.adaptive_owen.coalitions import masks_of_sizes, random_keys
from protopfaith.shapley.estimators.adaptive_owen.sums import moved_sums, weighted_sums


def test_weighted_sums_are_those_of_the_weights():
    generator = torch.Generator().manual_seed(0)
    n, count = 40, 200
    chances = torch.rand(n - 1, generator=generator, dtype=torch.float64) + 0.1
    sizes = torch.randint(1, n, (count,), generator=generator)
    masks = masks_of_sizes(sizes, random_keys(count, n, generator))
    residuals = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    chance = chances[sizes - 1]
    weights = membership_weights(masks) / (n * chance)[:, None]
    for power, sums in zip((1, 2, 4), weighted_sums(masks, sizes, residuals, chance), strict=True):
        assert torch.allclose(sums, (residuals**power).T @ weights**power)


def test_moved_sums_are_those_of_moved_samples():
    torch.manual_seed(0)
    y = torch.randn(50, 2, 3).double()
    y = torch.cat([y, -y])  # so that cubes, which are left out, sum to zero
    shift = torch.randn(2, 3).double()
    moved = moved_sums([(y**k).sum(0) for k in (1, 2, 4)], torch.tensor(100.0), shift)
    for k, found in zip((1, 2, 4), moved, strict=True):
        assert torch.allclose(found, ((y + shift) ** k).sum(0))
