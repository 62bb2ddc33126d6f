"""Six of the games with known values, at one budget; `benchmarks/calibration.py` takes all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scipy.stats import t

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from calibration import measured
from further_games import FURTHER
from known_games import GAMES
from later_games import LATER
from outside_games import OUTSIDE

sys.path.pop(0)  # its names must not hide other packages from other tests

SEEDS = 4
SOME = ("linear", "dummies", "spikes on smooth", "airport", "product of random factors", "weighted voting")


@pytest.mark.parametrize("name", SOME)
def test_error_bars_of_the_default_hold(name):
    row = measured(name, GAMES[name](1), "adaptive_owen", 512, range(SEEDS))
    assert row.coverage >= 0.9
    assert row.largest >= 0.7
    # Four seeds know their own spread badly, so the bound is Student's.
    assert abs(row.slope - 1) <= max(0.02, t.ppf(0.999, SEEDS - 1) * row.slope_error)
    assert row.wrong <= 0.1


@pytest.mark.parametrize("name", [*GAMES, *FURTHER, *LATER, *OUTSIDE])
def test_known_values_sum_to_what_the_players_share(name):
    known = (GAMES | FURTHER | LATER | OUTSIDE)[name](3)
    game = known.game()
    assert known.truth.shape[1] == len(known.players)
    rounding = 1e-5 * game.total.abs().max() + 1e-6 * game.grand.abs().max()
    assert (known.truth.sum(1) - game.total).abs().max() <= rounding + 1e-6
