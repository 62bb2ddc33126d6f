"""Additive functions as they come, without any layer: moment propagation is exact there."""

import pytest
import torch
from torch.nn import functional as F

from protopfaith.shapley import Game, Players, estimate

FUNCTIONS = {
    "one number an image": lambda x: x.flatten(1).sum(1),
    "sum in one column": lambda x: x.flatten(1).sum(1, keepdim=True),
    "sum over several dimensions": lambda x: x.sum((1, 2, 3)),
    "average": lambda x: x.mean((1, 2, 3)),
    "average of rows": lambda x: x.mean(3).flatten(1),
    "average in one column": lambda x: x.flatten(1).mean(1, keepdim=True),
    "pooling": lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
    "stacked": lambda x: torch.stack([x.sum((1, 2, 3)), 2 * x[:, 0].sum((1, 2)) + 1], 1),
    "pixels": lambda x: x.flatten(1),
}
PLANS = [
    ("moment_path", {}),
    ("moment_path", {"factors": 3}),
    ("moment_path", {"precision": 0.01}),
    ("dasp", {}),
    ("dasp", {"factors": 3}),
    ("dasp", {"first_layer": "pixels"}),
]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("method", "options"), PLANS)
def test_values_of_an_additive_function_are_exact(name, method, options):
    image = torch.rand(2, 4, 6, generator=torch.Generator().manual_seed(0))
    game = Game(FUNCTIONS[name], image, Players.windows((4, 6), 2), 0.3)
    each = game(torch.eye(game.n_players, dtype=torch.bool)) - game.empty
    result = estimate(game, method, **options)
    assert torch.allclose(result.values, each.T.double(), atol=1e-5)
    assert float(result.completeness_gap.abs().max()) < 1e-4
