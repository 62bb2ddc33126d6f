import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import check_estimate, estimate

from ..games import brute_force, mask_game, network_game, random_table, table_game


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_exact_is_the_mean_over_all_orders(n):
    game = table_game(random_table(n, seed=n))
    result = estimate(game, "exact")
    assert torch.allclose(result.values, brute_force(game), atol=1e-6)
    assert result.completeness_gap.abs().max() < 1e-6
    assert not result.standard_errors.any()
    assert result.evaluations == 2**n


@pytest.mark.parametrize("n", [2, 5, 9])
def test_exact_equals_shapiq(n):
    shapiq = pytest.importorskip("shapiq")
    table = random_table(n, outputs=1, seed=n)
    game = table_game(table)

    class Known(shapiq.Game):
        def __init__(self):
            empty = float(game.empty[0])
            super().__init__(n, normalize=True, normalization_value=empty)

        def value_function(self, coalitions):
            return game(torch.as_tensor(np.asarray(coalitions, dtype=bool)))[:, 0].numpy()

    theirs = shapiq.ExactComputer(n_players=n, game=Known())(index="SV", order=1)
    ours = estimate(game, "exact").values[0]
    assert np.allclose([theirs[(i,)] for i in range(n)], ours, atol=1e-6)


def test_exact_values_of_a_network_sum_to_the_total():
    result = estimate(network_game(), "exact")
    assert torch.allclose(result.values.sum(1), result.total, atol=1e-5)


def test_too_many_players_are_refused():
    with pytest.raises(ProtoPFaithError, match="at most 20 players"):
        estimate(mask_game(lambda m: m.sum(1), 21), "exact")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_budget_below_all_coalitions_is_refused_before_any_is_evaluated(n):
    game = table_game(random_table(n, seed=n))
    assert estimate(game, "exact", budget=2**n).evaluations == 2**n
    asked = []
    watched = mask_game(lambda images: asked.append(1) or images.flatten(1)[:, :1], n)
    asked.clear()  # of what a game asks when it is opened
    for check in (estimate, check_estimate):
        with pytest.raises(ProtoPFaithError, match=rf"need {2**n} evaluations, and the budget is {2**n - 1}"):
            check(watched, "exact", budget=2**n - 1)
    assert not asked
