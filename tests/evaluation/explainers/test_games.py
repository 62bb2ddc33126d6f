from __future__ import annotations

import torch

from protopfaith.evaluation.explainers import EXPLAINERS, density, game_of
from protopfaith.evaluation.explainers.games import from_attribution
from protopfaith.evaluation.metrics.removal import region_sums, removal_ranks
from protopfaith.shapley import Game, Players, estimate


def test_explainers_that_sample_are_the_estimators_of_their_names(model, image, options) -> None:
    for name, estimator in (("ours", "default"), ("owen", "owen")):
        game = game_of(model, image, [0, 2], options)
        values = estimate(game, estimator, budget=options.budget, seed=options.seed).values
        found = EXPLAINERS[name](model, image, [0, 2], options)
        assert torch.allclose(-found.values(options.players), values, rtol=1e-4, atol=1e-6)


def test_a_map_of_players_with_channels_apart_has_all_channels_in_it() -> None:
    players = Players.windows((6, 6), 2, channels=3)
    values = torch.rand(2, len(players), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    maps = density(values, players)
    assert maps.shape == (2, 6, 6)
    assert torch.allclose(region_sums(maps, players.flat), values.reshape(2, 3, 9).sum(1))
    game = Game(lambda x: x.flatten(1).sum(1), torch.rand(3, 6, 6), Players.windows((6, 6), 3, channels=3))
    found = from_attribution(estimate(game, "exact"))
    assert found.regions is not None
    assert torch.allclose(-found.values(found.regions).sum(), game.total.sum())
    assert removal_ranks(found.maps[0], found.regions).shape == (6, 6)
