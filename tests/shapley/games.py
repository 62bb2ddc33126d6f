"""Small games with known values, for the tests of this folder."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor, nn

from protopfaith.shapley import ESTIMATORS, Game, Players

# Estimators that evaluate coalitions at random: a new one is tested by being registered.
SAMPLING = [name for name in sorted(ESTIMATORS) if ESTIMATORS.traits(name).evaluates and name != "exact"]


def mask_game(function, n: int, **options) -> Game:
    """A game of `n` players whose value is `function(masks)`: the image is a row of ones, a pixel
    each.
    """
    return Game(
        lambda images: function(images[:, 0, 0] > 0.5),
        torch.ones(1, 1, n),
        Players.windows((1, n), 1),
        **options,
    )


def table_game(table: Tensor, **options) -> Game:
    """A game given by its values `(2^n, outputs)`; player i is binary digit i of the row."""
    n = (len(table) - 1).bit_length()
    digits = 2 ** torch.arange(n)
    return mask_game(lambda masks: table[(masks * digits).sum(1)], n, **options)


def random_table(n: int, outputs: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(2**n, outputs, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def brute_force(game: Game) -> Tensor:
    """The definition: the mean marginal contribution over all orders, one evaluation at a time."""
    n = game.n_players
    values = torch.zeros(game.n_outputs, n, dtype=torch.float64)
    orders = list(permutations(range(n)))
    for order in orders:
        present = torch.zeros(1, n, dtype=torch.bool)
        before = game(present)[0].double()
        for player in order:
            present[0, player] = True
            after = game(present)[0].double()
            values[:, player] += after - before
            before = after
    return values / len(orders)


def network(seed: int = 0, outputs: int = 3, size: int = 12) -> nn.Module:
    """A random convolutional network on 3 x size x size images."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * (size // 2) ** 2, outputs),
    ).eval()


def network_game(seed: int = 0, outputs: int = 3, windows: int = 4, size: int = 12, **options) -> Game:
    image = torch.randn(3, size, size, generator=torch.Generator().manual_seed(seed + 1))
    players = Players.windows((size, size), windows)
    return Game(network(seed, outputs, size), image, players, **options)
