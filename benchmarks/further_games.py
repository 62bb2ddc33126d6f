"""Further games with known Shapley values: none of them was looked at when the default was made.

So they tell how it does on games that nobody has tuned it for: `calibration.py --games further`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from known_games import (
    KnownGame,
    Maker,
    _grid,
    _groups,
    _main,
    _random,
    _tensor,
    shapley_of_weights,
    smooth_map,
    unanimity_sum,
)

FURTHER: dict[str, Maker] = {}


def further_game(name: str) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        FURTHER[name] = make
        return make

    return add


@further_game("heavy tails")
def heavy_tails(seed: int) -> KnownGame:
    """Effects by Cauchy's distribution: few make almost everything."""
    return unanimity_sum(_grid(14), _main(_random(seed).standard_cauchy(size=196)))


@further_game("random formula")
def random_formula(seed: int) -> KnownGame:
    """One if any of ten clauses of two to four players is true; clauses share players."""
    random = _random(seed)
    clauses = [frozenset(random.choice(30, random.integers(2, 5), replace=False).tolist()) for _ in range(10)]
    place = random.permutation(144)
    weights: dict[frozenset, float] = {}
    for size in range(1, len(clauses) + 1):
        for some in combinations(clauses, size):
            union = frozenset().union(*some)
            weights[union] = weights.get(union, 0.0) - (-1.0) ** size
    truth = np.zeros(144)
    for union, weight in weights.items():
        truth[place[list(union)]] += weight / len(union)
    tables = [torch.as_tensor(place[list(clause)]) for clause in clauses]

    def function(masks: Tensor) -> Tensor:
        return torch.stack([masks[:, table].all(1) for table in tables], 1).any(1).double()

    return KnownGame(function, _tensor(truth), _grid(12))


@further_game("duplicated players")
def duplicated(seed: int) -> KnownGame:
    """Each player has a twin elsewhere, and one of the two is enough."""
    random = _random(seed)
    twins, weights = random.permutation(196).reshape(98, 2), random.normal(size=98)
    singles = [(twins[k, [side]], float(weights[k])) for k in range(98) for side in range(2)]
    return unanimity_sum(_grid(14), [*singles, *((twins[k], -float(weights[k])) for k in range(98))])


@further_game("either but not both")
def either(seed: int) -> KnownGame:
    """How many of 120 random pairs have one of the two: whole numbers, no main effect at density 1/2."""
    random = _random(seed)
    pairs = _groups(196, 2, 120, random)
    terms = [(pair[[side]], 1.0) for pair in pairs for side in range(2)]
    values = 0.5 * random.choice([-1.0, 0.0, 1.0], size=196)
    return unanimity_sum(_grid(14), [*_main(values), *terms, *((pair, -2.0) for pair in pairs)])


@further_game("staircase")
def staircase(seed: int) -> KnownGame:
    """Steps of a weighted sum: whole numbers."""
    weights = _random(seed).integers(0, 12, size=121)
    table = torch.as_tensor(weights).double()
    truth = shapley_of_weights(weights, lambda total: np.floor(total / 60))
    return KnownGame(lambda masks: (masks.double() @ table / 60).floor(), _tensor(truth), _grid(11))


@further_game("steep sigmoid")
def sigmoid(seed: int) -> KnownGame:
    """A neuron: a few inputs speak against, and the threshold lies at a third of the sum."""
    random = _random(seed)
    weights = random.integers(0, 10, size=100)
    middle, scale = weights.sum() / 3, weights.sum() / 30

    def activation(total: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(total - middle) / scale))

    table = torch.as_tensor(weights).double()
    truth = shapley_of_weights(weights, activation)
    return KnownGame(
        lambda masks: torch.sigmoid((masks.double() @ table - middle) / scale), _tensor(truth), _grid(10)
    )


@further_game("smallest of those present")
def smallest(seed: int) -> KnownGame:
    """v(S) = a constant minus the smallest cost in S: most coalitions know it already."""
    random = _random(seed)
    gains = 5 - np.sort(random.gamma(2.0, 1.0, size=144)).clip(max=5)  # of the cheapest: largest first
    place = random.permutation(144)
    order = np.argsort(gains)
    steps = np.diff(gains[order], prepend=0.0) / np.arange(144, 0, -1)
    truth = np.zeros(144)
    truth[place[order]] = np.cumsum(steps)
    table = torch.zeros(144, dtype=torch.float64)
    table[torch.as_tensor(place)] = torch.as_tensor(gains)
    return KnownGame(lambda masks: (masks.double() * table).amax(1), _tensor(truth), _grid(12))


@further_game("large groups")
def large_groups(seed: int) -> KnownGame:
    """Effects that only coalitions of almost all players show, beside weak ones of a smooth map."""
    random = _random(seed)
    groups = [random.choice(144, size, replace=False) for size in (20, 30, 40, 12, 15, 25)]
    terms = [(group, float(weight)) for group, weight in zip(groups, 3 * random.normal(size=6), strict=True)]
    return unanimity_sum(_grid(12), [*_main(0.05 * smooth_map(12, random)), *terms])


@further_game("nearly constant")
def nearly_constant(seed: int) -> KnownGame:
    """A large constant that leaves few digits for what the players do."""
    inner = _random(seed).normal(size=196) / 100
    table = torch.as_tensor(inner)
    return KnownGame(lambda masks: (1000 + masks.double() @ table).float(), _tensor(inner), _grid(14))


@further_game("linear with noise")
def noisy(seed: int) -> KnownGame:
    """A linear game plus noise of a coalition's own, as large as all main effects together.

    The noise is a fixed function of the coalition without mean effects: its share of each value is about the
    noise over the root of all coalitions' number, which is nothing.
    """
    values = _random(seed).normal(size=196)
    table, size = torch.as_tensor(values), 0.5 * float(np.linalg.norm(values))
    random = torch.Generator().manual_seed(seed)
    phases = 1e3 * torch.randn(196, 8, dtype=torch.float64, generator=random)

    def function(masks: Tensor) -> Tensor:
        x = masks.double()
        inside = (masks.sum(1) > 0) & (masks.sum(1) < 196)
        return x @ table + size * inside * torch.sin(x @ phases).sum(1) / 2

    return KnownGame(function, _tensor(values), _grid(14))


@further_game("four against each other")
def four(seed: int) -> KnownGame:
    """The parity of four players among a hundred that do nothing, and two main effects."""
    random = _random(seed)
    chosen = random.choice(100, 6, replace=False)
    terms = [
        (np.array(some), (-2.0) ** size) for size in range(1, 5) for some in combinations(chosen[:4], size)
    ]
    return unanimity_sum(_grid(10), [*terms, (chosen[[4]], 0.4), (chosen[[5]], -0.4)])
