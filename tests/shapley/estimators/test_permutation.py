import torch

from protopfaith.shapley.estimators.permutation import pair_contribution

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
