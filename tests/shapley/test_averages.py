from __future__ import annotations

import pytest
import torch

from protopfaith.shapley.averages import Averages, from_powers, likely_variances
from protopfaith.shapley.noise import Noisy
from protopfaith.shapley.sampling import Generators

from .games import random_table, table_game


def test_it_is_the_mean_of_its_samples_in_one_go_or_in_two() -> None:
    game, generators = table_game(random_table(5)), Generators(torch.device("cpu"), 7)
    shape = (game.n_outputs, game.n_players)

    def draw(generator: torch.Generator) -> torch.Tensor:
        return 3 + torch.randn(shape, generator=generator)

    whole = Averages(game, None, draw, evaluations=4)
    assert whole.round(game, 43, generators) == 40  # what is left does not pay for a sample
    first = Averages(game, None, draw, evaluations=4)
    first.round(game, 12, generators)
    second = Averages(game, first.state(), draw, evaluations=4)
    second.round(game, 28, generators)
    samples = torch.stack([draw(generators[number]).double() for number in range(10)])
    for sampler in (whole, second):
        found = sampler.estimate(game)
        assert torch.allclose(found.values, samples.mean(0))
        assert torch.allclose(found.gap, samples.mean(0).sum(1) - game.total)
        assert found.degrees_of_freedom == 9
        mean = samples.var(0).mean() / 10  # each player's is drawn to that of all
        assert float(found.variances.mean()) == pytest.approx(float(mean), rel=0.5)


def test_players_with_large_values_are_expected_to_vary_more() -> None:
    variances, nothing = torch.ones(1, 4, dtype=torch.float64), torch.zeros(1, 4, dtype=torch.float64)
    means = torch.tensor([[0.0, 1.0, 1.0, 10.0]], dtype=torch.float64)
    small, *_, large = likely_variances(Noisy(means, variances, nothing))[0].tolist()
    assert small == pytest.approx(1.0)
    assert large == pytest.approx(100 / (102 / 4))
    assert not likely_variances(Noisy(means, nothing, nothing)).any()


def test_where_few_contributions_make_the_variance_any_player_may_make_the_next() -> None:
    contributions = torch.zeros(20, 1, 40, dtype=torch.float64)
    contributions[3, 0, 0] = contributions[11, 0, 1] = 1.0
    never = likely_variances(found_in(contributions))[0, -1]
    # As if it had made one difference in 20 pairs, though it made none.
    assert float(never) == pytest.approx(1 / 20**2, rel=0.2)


def test_mean_variance_and_doubt_are_those_of_the_samples() -> None:
    samples = 5 + torch.randn(9, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = found_in(samples)
    assert torch.allclose(found.values, samples.mean(0))
    assert torch.allclose(found.variances, samples.var(0) / 9)
    squares = (samples - samples.mean(0)).square()
    assert torch.allclose(found.doubts, squares.var(0, correction=0) / 9 / 8**2)


def found_in(samples: torch.Tensor) -> Noisy:
    return from_powers([samples.pow(k).mean(0) for k in range(1, 5)], torch.tensor(float(len(samples))))
