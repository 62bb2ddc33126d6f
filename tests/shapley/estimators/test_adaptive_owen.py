import pytest
import torch

from protopfaith.shapley import Game, Players, estimate
from protopfaith.shapley.densities import membership_weights
from protopfaith.shapley.estimators import adaptive_owen
from protopfaith.shapley.estimators.adaptive_owen import (
    KEPT,
    masks_by_threshold,
    masks_of_sizes,
    weighted_sums,
)


@pytest.mark.parametrize("draw", [masks_of_sizes, masks_by_threshold])
def test_masks_have_their_sizes_and_every_player_an_equal_chance(draw):
    generator = torch.Generator().manual_seed(0)
    sizes = torch.arange(1, 13).repeat_interleave(4000)
    masks = draw(sizes, 13, generator)
    assert masks.dtype == torch.bool
    assert torch.equal(masks.sum(1), sizes)
    for size in (1, 6, 12):
        p = size / 13
        chances = masks[sizes == size].double().mean(0)
        assert float((chances - p).abs().max()) < 5 * (p * (1 - p) / 4000) ** 0.5
        pairs = masks[sizes == size].double()
        together = float((pairs[:, 0] * pairs[:, 1]).mean())
        expected = size * (size - 1) / (13 * 12)
        assert abs(together - expected) < 5 * (max(expected, 1 / 4000) / 4000) ** 0.5


def test_equal_keys_do_not_change_the_sizes(monkeypatch):
    """Eight different keys for 50 players: ties at every threshold."""
    monkeypatch.setattr(adaptive_owen, "KEY_BITS", 3)
    sizes = torch.arange(1, 50)
    assert torch.equal(masks_by_threshold(sizes, 50, torch.Generator().manual_seed(1)).sum(1), sizes)


def test_weighted_sums_are_those_of_the_weights():
    generator = torch.Generator().manual_seed(0)
    n, count = 40, 200
    chance = torch.rand(n - 1, generator=generator, dtype=torch.float64) + 0.1
    sizes = torch.randint(1, n, (count,), generator=generator)
    masks = masks_of_sizes(sizes, n, generator)
    residuals = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    weights = membership_weights(masks) / (n * chance[sizes - 1])[:, None]
    sums, squares = weighted_sums(masks, sizes, residuals, chance)
    assert torch.allclose(sums, residuals.T @ weights)
    assert torch.allclose(squares, residuals.square().T @ weights.square())


def test_many_samples_report_how_far_they_are():
    game = Game(lambda x: x.flatten(1)[:, :2].square(), torch.randn(1, 5, 6), Players.windows((5, 6), 1))
    reported = []
    budget = KEPT + 3 * adaptive_owen.ROUND
    estimate(game, "adaptive_owen", budget=budget, progress=lambda done, most: reported.append((done, most)))
    assert len(reported) >= 5
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1] == (budget, budget)
