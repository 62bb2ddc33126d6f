"""Games with known Shapley values that came last: `calibration.py --games later`.

The allowance for values that hide in the noise (`posterior.py`) was set by looking at the first four; the
others were only counted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, factorial

import numpy as np
import torch
from torch import Tensor

from known_games import (
    KnownGame,
    Maker,
    _grid,
    _main,
    _tensor,
    product_game,
    shapley_of_weights,
    smooth_map,
    unanimity_sum,
)

LATER: dict[str, Maker] = {}


def later_game(name: str) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        LATER[name] = make
        return make

    return add


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 991])


def _uniform_nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for integrals over densities from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def random_table(seed: int, side: int, active: int, values: np.ndarray | None = None) -> KnownGame:
    """Some players have any function of theirs, all others add `values` or nothing."""
    random = _random(seed)
    chosen = random.choice(side * side, active, replace=False)
    table = random.normal(size=2**active)
    table[0] = 0.0
    truth = np.zeros(side * side) if values is None else values.copy()
    linear = torch.as_tensor(truth.copy())
    for player, coalition in ((p, c) for p in range(active) for c in range(2**active) if not c >> p & 1):
        size = coalition.bit_count()
        weight = factorial(size) * factorial(active - 1 - size) / factorial(active)
        truth[chosen[player]] += weight * (table[coalition | 1 << player] - table[coalition])
    places, digits, entries = torch.as_tensor(chosen), 2 ** torch.arange(active), torch.as_tensor(table)

    def function(masks: Tensor) -> Tensor:
        return entries[(masks[:, places].long() * digits).sum(1)] + masks.double() @ linear

    return KnownGame(function, _tensor(truth), _grid(side))


@later_game("ten of 196 act")
def ten_act(seed: int) -> KnownGame:
    return random_table(seed, side=14, active=10)


@later_game("parity of five")
def parity_of_five(seed: int) -> KnownGame:
    """One if an odd number of five players among 144 is there."""
    chosen = _random(seed).choice(144, 5, replace=False)
    subsets = [np.array(some) for size in range(1, 6) for some in combinations(chosen, size)]
    return unanimity_sum(_grid(12), [(some, -((-2.0) ** len(some)) / 2) for some in subsets])


@later_game("found in one of twelve places")
def found_somewhere(seed: int) -> KnownGame:
    """The best of twelve places, each of which needs four players, as for a prototype."""
    random = _random(seed)
    places = random.permutation(144)[:48].reshape(12, 4)
    worth = np.sort(random.uniform(0.2, 1, size=12))
    q, weights = _uniform_nodes(200)
    truth = np.zeros(144)
    for first, step in enumerate(np.diff(worth, prepend=0.0)):
        share = (weights * q**3 * (1 - q**4) ** (11 - first)).sum()
        truth[places[first:]] += step * share
    table, values = torch.as_tensor(places), torch.as_tensor(worth)
    return KnownGame(
        lambda masks: (masks[:, table].all(2).double() * values).amax(1), _tensor(truth), _grid(12)
    )


@later_game("eight act on a smooth map")
def eight_on_smooth(seed: int) -> KnownGame:
    return random_table(seed, side=14, active=8, values=0.1 * smooth_map(14, _random(seed + 1)))


@later_game("five of 400 act")
def five_act(seed: int) -> KnownGame:
    return random_table(seed, side=20, active=5)


@later_game("parity of three")
def parity_of_three(seed: int) -> KnownGame:
    chosen = _random(seed).choice(144, 3, replace=False)
    subsets = [np.array(some) for size in range(1, 4) for some in combinations(chosen, size)]
    return unanimity_sum(_grid(12), [(some, -((-2.0) ** len(some)) / 2) for some in subsets])


@later_game("square of a sum")
def square(seed: int) -> KnownGame:
    """Weights of both signs: each player has its weight times the whole sum."""
    weights = _random(seed).normal(size=196)
    table = torch.as_tensor(weights)
    return KnownGame(
        lambda masks: (masks.double() @ table).square(), _tensor(weights * weights.sum()), _grid(14)
    )


@later_game("cube of a sum")
def cube(seed: int) -> KnownGame:
    w = _random(seed).normal(size=144) + 0.1
    others, squares = w.sum() - w, (w**2).sum() - w**2
    truth = w**3 + 1.5 * (w**2 * others + w * squares) + w * (others**2 - squares)
    table = torch.as_tensor(w)
    return KnownGame(lambda masks: (masks.double() @ table) ** 3, _tensor(truth), _grid(12))


@later_game("patches of four neighbors")
def patches(seed: int) -> KnownGame:
    random, number = _random(seed), np.arange(196).reshape(14, 14)
    corners = [(row, column) for row in range(13) for column in range(13)]
    return unanimity_sum(
        _grid(14), [(number[r : r + 2, c : c + 2].ravel(), float(random.normal())) for r, c in corners]
    )


@later_game("each needs all before it")
def nested(seed: int) -> KnownGame:
    random = _random(seed)
    order, weights = random.permutation(144), random.normal(size=144) * np.linspace(1, 0.2, 144)
    return unanimity_sum(_grid(12), [(order[: k + 1], float(weights[k])) for k in range(30)])


@later_game("majority with three vetoes")
def vetoes(seed: int) -> KnownGame:
    """Three players must be there, and 40 of the other 97."""
    must = _random(seed).choice(100, 3, replace=False)
    rest = np.setdiff1d(np.arange(100), must)
    truth = np.full(100, comb(96, 39) / (comb(99, 42) * 100))
    truth[must] = (1 - 97 * truth[0]) / 3
    vetoes, others = torch.as_tensor(must), torch.as_tensor(rest)
    return KnownGame(
        lambda masks: (masks[:, vetoes].all(1) & (masks[:, others].sum(1) >= 40)).double(),
        _tensor(truth),
        _grid(10),
    )


@later_game("any of twelve, each perhaps")
def noisy_or(seed: int) -> KnownGame:
    random = _random(seed)
    chosen, chances = random.choice(196, 12, replace=False), random.uniform(0.2, 0.9, size=12)
    q, weights = _uniform_nodes(64)
    missed = 1 - q[:, None] * chances  # (nodes, 12)
    truth = np.zeros(196)
    truth[chosen] = chances * (weights[:, None] * missed.prod(1, keepdims=True) / missed).sum(0)
    logs = torch.zeros(196, dtype=torch.float64)
    logs[torch.as_tensor(chosen)] = torch.as_tensor(np.log1p(-chances))
    return KnownGame(lambda masks: 1 - (masks.double() @ logs).exp(), _tensor(truth), _grid(14))


def _function_of_sum(
    weights: np.ndarray, side: int, function: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.float64
) -> KnownGame:
    table = torch.as_tensor(weights).to(dtype)
    truth = shapley_of_weights(weights, lambda total: function(torch.as_tensor(total)).numpy())
    return KnownGame(lambda masks: function(masks.to(dtype) @ table), _tensor(truth), _grid(side))


@later_game("logarithm of a sum")
def logarithm(seed: int) -> KnownGame:
    return _function_of_sum(_random(seed).integers(0, 20, size=121), 11, torch.log1p)


@later_game("bankruptcy")
def bankruptcy(seed: int) -> KnownGame:
    """What is left of an estate when all claims outside the coalition are paid."""
    claims = _random(seed).integers(1, 15, size=100)
    missing = int(claims.sum()) - int(0.6 * claims.sum())
    return _function_of_sum(claims, 10, lambda total: (total - missing).clamp_min(0))


@later_game("nearly all needed")
def late_threshold(seed: int) -> KnownGame:
    weights = _random(seed).integers(1, 6, size=144)
    quota = int(0.97 * weights.sum())
    return _function_of_sum(weights, 12, lambda total: (total >= quota).double())


@later_game("ramp in single precision")
def ramp(seed: int) -> KnownGame:
    weights = _random(seed).integers(0, 9, size=144)
    whole = int(weights.sum())
    return _function_of_sum(
        weights, 12, lambda total: ((total / whole - 0.3) / 0.2).clamp(0, 1), torch.float32
    )


@later_game("two rare giants")
def giants(seed: int) -> KnownGame:
    random = _random(seed)
    rare = [(random.choice(196, 3, replace=False), 20.0), (random.choice(196, 4, replace=False), -20.0)]
    return unanimity_sum(_grid(14), [*_main(0.1 * random.normal(size=196)), *rare])


@later_game("forty mixed outputs")
def forty_outputs(seed: int) -> KnownGame:
    """Scales from a thousandth to a thousand."""
    random = _random(seed)
    linear = unanimity_sum(_grid(14), _main(random.normal(size=196)))
    parts = [patches(seed + 1), linear, random_table(seed, side=14, active=6)]
    scales = torch.logspace(-3, 3, 40, dtype=torch.float64)[:, None]
    mix = torch.as_tensor(random.normal(size=(40, 3))) * scales

    def function(masks: Tensor) -> Tensor:
        return torch.stack([part.function(masks) for part in parts], 1) @ mix.T

    return KnownGame(function, mix @ torch.cat([part.truth for part in parts]), _grid(14))


@later_game("25 players")
def few(seed: int) -> KnownGame:
    random = _random(seed)
    groups = [(random.choice(25, size, replace=False), float(random.normal())) for size in range(2, 9)]
    return unanimity_sum(_grid(5), [*_main(random.normal(size=25)), *groups])


@later_game("product of 30 factors")
def few_factors(seed: int) -> KnownGame:
    return product_game(_grid(5, 6), _random(seed).uniform(0.5, 1.6, size=30))


@later_game("900 players")
def many(seed: int) -> KnownGame:
    random = _random(seed)
    values = smooth_map(30, random) + 0.3 * random.normal(size=900)
    triples = [(random.choice(900, 3, replace=False), float(random.normal())) for _ in range(300)]
    return unanimity_sum(_grid(30), [*_main(values), *triples])


@later_game("triples of 30 of 196")
def triples_of_few(seed: int) -> KnownGame:
    random = _random(seed)
    active = random.choice(196, 30, replace=False)
    triples = [random.choice(active, 3, replace=False) for _ in range(60)]
    return unanimity_sum(_grid(14), [(three, float(random.standard_t(2))) for three in triples])
