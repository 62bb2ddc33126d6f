import torch

from protopfaith.shapley import estimate
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


def test_a_large_constant_leaves_no_rounding_in_the_errors() -> None:
    weights = torch.linspace(-1, 1, 8, dtype=torch.float64)
    masks = torch.tensor([[number >> player & 1 for player in range(8)] for number in range(256)])
    found = estimate(table_game((1e6 + masks.double() @ weights)[:, None]), "permutation", budget=100)
    assert float(found.standard_errors.max()) < 1e-8
