"""The ways to make games with known values, on few players, against all coalitions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import stranger_games as made
from known_games import KnownGame

sys.path.pop(0)  # its names must not hide other packages from other tests

from protopfaith.shapley import Players, estimate

PLAYERS = Players.windows((2, 4), 1)
EFFECTS = np.array([0.5, -2.0, 3.0, 1.0, 0.0, -0.3, 0.2, 4.0])
WHOLE = np.array([3, -2, 0, 5, 1, -4, 2, 2])


def _template() -> KnownGame:
    blocks = np.array([[0, 3], [1, 6], [2, 4]])
    levels = np.random.default_rng(0).normal(size=(3, 4))
    return made.best_template(PLAYERS, blocks, levels)


WAYS: dict[str, Callable[[], KnownGame]] = {
    "sum": lambda: made.of_sum(PLAYERS, WHOLE, lambda s: np.sin(s) + 0.1 * s**2),
    "template": _template,
    "ranks": lambda: made.of_ranks(PLAYERS, np.abs(EFFECTS), [1.0, -0.5, 2.0]),
    "turned": lambda: made.turned(PLAYERS, EFFECTS * (WHOLE != 2), np.array([4, 6, 7]), 2),
    "redundant": lambda: made.redundant(PLAYERS, [np.array([0, 5]), np.array([1, 2, 7])], [2.0, -1.0]),
}


@pytest.mark.parametrize("way", WAYS)
def test_known_values_are_those_of_all_coalitions(way):
    known = WAYS[way]()
    found = estimate(known.game(), "exact").values
    torch.testing.assert_close(known.truth, found, rtol=1e-6, atol=1e-6)


def test_of_an_altered_game_single_coalitions_count():
    """Among five players no coalition has more than two without its complement having fewer."""
    players = Players.windows((1, 5), 1)
    game = made.of_sum(players, WHOLE[:5], np.sin)
    known = made.altered(game, lambda v, masks: v * (1 + made.noise(masks)))
    found = estimate(known.game(), "exact").values
    assert not torch.allclose(game.truth, found, rtol=0.01)
    torch.testing.assert_close(known.truth, found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", made.STRANGER)
def test_values_of_the_games_add_up_to_what_they_share(name):
    known = made.STRANGER[name](0)
    ends = torch.zeros(2, len(known.players), dtype=torch.bool)
    ends[1] = True
    empty, full = known.function(ends).double().reshape(2, -1)
    torch.testing.assert_close(known.truth.sum(1), full - empty, rtol=1e-6, atol=1e-9)
