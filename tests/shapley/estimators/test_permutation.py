import pytest
import torch

from protopfaith.shapley import estimate
from protopfaith.shapley.estimators.permutation import from_powers, likely_variances, pair_contribution
from protopfaith.shapley.noise import Noisy

from ..games import random_table, table_game


def test_a_pair_is_the_mean_over_the_order_and_its_reverse():
    game = table_game(random_table(5))
    order = torch.tensor([3, 0, 4, 1, 2])
    expected = torch.zeros(2, 5).double()
    for way in (order.tolist(), order.flip(0).tolist()):
        present = torch.zeros(1, 5, dtype=torch.bool)
        for player in way:
            before = game(present)[0]
            present[0, player] = True
            expected[:, player] += (game(present)[0] - before) / 2
    assert torch.allclose(pair_contribution(game, order), expected)


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


def test_a_large_constant_leaves_no_rounding_in_the_errors() -> None:
    weights = torch.linspace(-1, 1, 8, dtype=torch.float64)
    masks = torch.tensor([[number >> player & 1 for player in range(8)] for number in range(256)])
    found = estimate(table_game((1e6 + masks.double() @ weights)[:, None]), "permutation", budget=100)
    assert float(found.standard_errors.max()) < 1e-8
