"""The ways to make games with known values, on few players, against all coalitions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import outside_games as made
from known_games import KnownGame

sys.path.pop(0)  # its names must not hide other packages from other tests

from protopfaith.shapley import Players, estimate

PLAYERS = Players.windows((2, 4), 1)
EFFECTS = np.array([0.5, -2.0, 3.0, 1.0, 0.0, -0.3, 0.2, 4.0])
NOBODY = np.array([], int)


def _counts() -> KnownGame:
    groups = [np.array([0, 3]), np.array([1, 5, 7]), np.array([2])]
    return made.of_counts(PLAYERS, groups, lambda a, b, c: torch.minimum(a, b) ** 2 + 3 * a * c)


def _rules() -> KnownGame:
    rules = [(np.array([0, 1]), np.array([2, 5, 7]), 2.0), (np.array([3, 4, 6]), NOBODY, -1.0)]
    return made.of_rules(PLAYERS, rules, EFFECTS)


def _best() -> KnownGame:
    blocks = np.arange(8).reshape(4, 2)
    return made.best_of(PLAYERS, blocks, np.array([1.0, 2.5, 2.0, 0.7]), 2.0)


WAYS: dict[str, Callable[[], KnownGame]] = {
    "counts": _counts,
    "rules": _rules,
    "best": _best,
    "factors": lambda: made.of_factors(PLAYERS, np.exp(EFFECTS / 2)),
    "quadratic": lambda: made.quadratic(PLAYERS, np.outer(EFFECTS, EFFECTS[::-1])),
    "by size": lambda: made.by_size(PLAYERS, EFFECTS, lambda p: np.cos(3 * p)),
    "range": lambda: made.range_of(PLAYERS, EFFECTS),
    "quorum": lambda: made.quorums(PLAYERS, np.arange(8).reshape(2, 4), np.array([2.0, -1.0]), (2, 4)),
    "sum": lambda: made.scaled(made.plus(_counts(), _best()), -3.0, 7.0),
}


@pytest.mark.parametrize("way", WAYS)
def test_known_values_are_those_of_all_coalitions(way):
    known = WAYS[way]()
    found = estimate(known.game(), "exact").values
    torch.testing.assert_close(known.truth, found, rtol=1e-6, atol=1e-6)
