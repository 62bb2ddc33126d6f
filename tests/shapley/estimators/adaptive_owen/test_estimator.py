import torch

from protopfaith.shapley import Game, Players, estimate
from protopfaith.shapley.densities import membership_weights
from protopfaith.shapley.estimators.adaptive_owen.coalitions import masks_of_sizes
from protopfaith.shapley.estimators.adaptive_owen.estimator import KEPT, ROUND, weighted_sums


def test_weighted_sums_are_those_of_the_weights():
    generator = torch.Generator().manual_seed(0)
    n, count = 40, 200
    chance = torch.rand(n - 1, generator=generator, dtype=torch.float64) + 0.1
    sizes = torch.randint(1, n, (count,), generator=generator)
    masks = masks_of_sizes(sizes, n, generator)
    residuals = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    weights = membership_weights(masks) / (n * chance[sizes - 1])[:, None]
    for power, sums in zip((1, 2, 4), weighted_sums(masks, sizes, residuals, chance), strict=True):
        assert torch.allclose(sums, (residuals**power).T @ weights**power)


def test_many_samples_report_how_far_they_are():
    game = Game(lambda x: x.flatten(1)[:, :2].square(), torch.randn(1, 5, 6), Players.windows((5, 6), 1))
    reported = []
    budget = KEPT + 3 * ROUND
    estimate(game, "adaptive_owen", budget=budget, progress=lambda done, most: reported.append((done, most)))
    assert len(reported) >= 5
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1] == (budget, budget)
