import pytest
import torch

from protopfaith.shapley.estimators.permutation import moderated, pair_contribution

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
    variances = torch.tensor([[1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    means = torch.tensor([[0.0, 1.0, 1.0, 10.0]], dtype=torch.float64)
    small, *_, large = moderated(variances, means, 4.0)[0].tolist()
    assert small == pytest.approx(1.0)
    assert large == pytest.approx((4 + 4 * 100 / (102 / 4)) / 8)
    assert not moderated(torch.zeros_like(variances), means, 4.0).any()
