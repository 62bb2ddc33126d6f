"""Games whose Shapley values are known in closed form, on players that lie on a grid (or in superpixels).

Each is a function of masks `(m, n)` and the true values `(outputs, n)`. They differ in what makes estimation
hard: interactions of all orders, heavy tails, values without any spatial order, players that do nothing,
thresholds that few coalitions see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protopfaith.shapley import Game, Players

Function = Callable[[Tensor], Tensor]  # masks (m, n) to values (m,) or (m, outputs)


@dataclass(frozen=True)
class KnownGame:
    """A function of masks and its Shapley values `(outputs, n)`."""

    function: Function
    truth: Tensor
    players: Players

    def game(self) -> Game:
        """On an image that is one where a player is present."""
        labels = self.players.labels
        first = torch.unique(labels, return_inverse=True)[1].reshape(-1)
        place = torch.zeros(len(self.players), dtype=torch.long).scatter_(
            0, first, torch.arange(first.numel())
        )

        def function(images: Tensor) -> Tensor:
            return self.function(images.flatten(1)[:, place] > 0.5)

        return Game(function, torch.ones(1, *labels.shape), self.players)


Maker = Callable[[int], KnownGame]
GAMES: dict[str, Maker] = {}


def known_game(name: str) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        GAMES[name] = make
        return make

    return add


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 77])


def _grid(rows: int, columns: int | None = None) -> Players:
    return Players.windows((rows, columns or rows), 1)


def _tensor(values: np.ndarray) -> Tensor:
    return torch.as_tensor(np.atleast_2d(values), dtype=torch.float64)


def smooth_map(side: int, random: np.random.Generator, width: float = 2.0) -> np.ndarray:
    """A random map `(side * side,)` that is smooth over `width` players, of variance one."""
    from scipy.ndimage import gaussian_filter

    values = gaussian_filter(random.normal(size=(side, side)), width, mode="reflect")
    return ((values - values.mean()) / values.std()).reshape(-1)


# Sums of unanimity games: weight times the product of some players' presence, shared equally among them.


def unanimity_sum(players: Players, terms: list[tuple[np.ndarray, float]]) -> KnownGame:
    n = len(players)
    truth = np.zeros(n)
    by_order: dict[int, list[tuple[np.ndarray, float]]] = {}
    for group, weight in terms:
        truth[group] += weight / len(group)
        by_order.setdefault(len(group), []).append((group, weight))
    stacked = [
        (torch.as_tensor(np.stack([g for g, _ in some])), torch.tensor([w for _, w in some]).double())
        for some in by_order.values()
    ]

    def function(masks: Tensor) -> Tensor:
        x = masks.double()
        return sum(x[:, groups].prod(-1) @ weights for groups, weights in stacked)  # type: ignore[return-value]

    return KnownGame(function, _tensor(truth), players)


def _main(values: np.ndarray) -> list[tuple[np.ndarray, float]]:
    return [(np.array([i]), float(value)) for i, value in enumerate(values)]


def _groups(n: int, order: int, count: int, random: np.random.Generator) -> list[np.ndarray]:
    return [random.choice(n, order, replace=False) for _ in range(count)]


def _interacting(
    players: Players, values: np.ndarray, random: np.random.Generator, *, order: int, count: int, size: float
) -> KnownGame:
    groups = _groups(len(players), order, count, random)
    weights = size * random.normal(size=count)
    return unanimity_sum(players, [*_main(values), *zip(groups, weights.tolist(), strict=True)])


@known_game("linear")
def linear(seed: int) -> KnownGame:
    return unanimity_sum(_grid(14), _main(_random(seed).normal(size=196)))


@known_game("linear, 400 players")
def linear_many(seed: int) -> KnownGame:
    return unanimity_sum(_grid(20), _main(_random(seed).standard_t(3, size=400)))


@known_game("pairs")
def pairs(seed: int) -> KnownGame:
    random = _random(seed)
    return _interacting(_grid(14), 0.3 * random.normal(size=196), random, order=2, count=600, size=1.0)


@known_game("triples")
def triples(seed: int) -> KnownGame:
    random = _random(seed)
    return _interacting(_grid(12), 0.3 * random.normal(size=144), random, order=3, count=400, size=1.0)


@known_game("orders 1 to 8")
def many_orders(seed: int) -> KnownGame:
    random = _random(seed)
    groups = [random.choice(196, 1 + k % 8, replace=False) for k in range(400)]
    return unanimity_sum(_grid(14), [(group, float(random.normal())) for group in groups])


@known_game("unanimity of 6")
def unanimity(seed: int) -> KnownGame:
    return unanimity_sum(_grid(10), [(_random(seed).choice(100, 6, replace=False), 1.0)])


@known_game("smooth")
def smooth(seed: int) -> KnownGame:
    random = _random(seed)
    return _interacting(_grid(14), smooth_map(14, random), random, order=3, count=300, size=1.0)


@known_game("permuted smooth")
def permuted_smooth(seed: int) -> KnownGame:
    random = _random(seed)
    values = random.permutation(smooth_map(14, random))
    return _interacting(_grid(14), values, random, order=3, count=300, size=1.0)


@known_game("spikes on smooth")
def spikes(seed: int) -> KnownGame:
    random = _random(seed)
    values = 0.3 * smooth_map(14, random)
    values[random.choice(196, 5, replace=False)] += random.choice([-5.0, 5.0], 5)
    return _interacting(_grid(14), values, random, order=2, count=200, size=0.7)


@known_game("checkerboard")
def checkerboard(seed: int) -> KnownGame:
    random = _random(seed)
    signs = np.where(np.add.outer(np.arange(14), np.arange(14)) % 2 == 0, 1.0, -1.0).reshape(-1)
    values = signs * (1 + 0.3 * random.normal(size=196))
    return _interacting(_grid(14), values, random, order=3, count=200, size=1.0)


@known_game("dummies")
def dummies(seed: int) -> KnownGame:
    """Four of five players do nothing at all."""
    random = _random(seed)
    active = random.choice(196, 40, replace=False)
    terms = [(active[[k]], float(random.normal())) for k in range(40)]
    terms += [(random.choice(active, 3, replace=False), float(random.normal())) for _ in range(80)]
    return unanimity_sum(_grid(14), terms)


@known_game("one enormous player")
def enormous(seed: int) -> KnownGame:
    random = _random(seed)
    values = random.normal(size=196)
    values[random.integers(196)] = 100.0
    return _interacting(_grid(14), values, random, order=2, count=100, size=1.0)


@known_game("parity")
def parity(seed: int) -> KnownGame:
    """An even number of players or an odd one: nothing but interaction, on top of a smooth map."""
    weights = smooth_map(12, _random(seed))
    swing = 1.0  # of the parity; its values are equal shares of what all players make of it

    def function(masks: Tensor) -> Tensor:
        return masks.double() @ torch.as_tensor(weights) + swing * (masks.sum(1) % 2).double()

    return KnownGame(function, _tensor(weights + swing * (144 % 2) / 144), _grid(12))


@known_game("superpixels of unequal size")
def superpixels(seed: int) -> KnownGame:
    """Effects as large as the regions; sizes differ by a factor of a hundred."""
    random = _random(seed)
    rows = np.cumsum(random.integers(1, 8, 12))
    columns = np.cumsum(random.integers(1, 8, 12))
    row = np.searchsorted(rows, np.arange(rows[-1]), side="right")
    column = np.searchsorted(columns, np.arange(columns[-1]), side="right")
    players = Players.from_labels(torch.as_tensor(row[:, None] * 12 + column))
    values = smooth_map(12, random) * players.sizes.numpy() / 10
    return _interacting(players, values, random, order=3, count=200, size=1.5)


@known_game("outputs of different scale")
def scales(seed: int) -> KnownGame:
    parts = [linear(seed), triples_on_grid(seed), products(seed), smooth(seed)]
    factors = (1e-3, 1.0, 1e3, 30.0)

    def function(masks: Tensor) -> Tensor:
        return torch.stack([f * part.function(masks) for f, part in zip(factors, parts, strict=True)], 1)

    truth = torch.cat([f * part.truth for f, part in zip(factors, parts, strict=True)])
    return KnownGame(function, truth, _grid(14))


def triples_on_grid(seed: int) -> KnownGame:
    random = _random(seed)
    return _interacting(_grid(14), 0.3 * random.normal(size=196), random, order=3, count=400, size=1.0)


# Products of factors: the multilinear extension is a product, its integral a polynomial's.


def product_game(players: Players, factors: np.ndarray) -> KnownGame:
    """v(S) = the product of the factors in S."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    q, weights = (nodes + 1) / 2, weights / 2
    logs = np.log1p(np.outer(q, factors - 1))
    truth = (weights[:, None] * np.exp(logs.sum(1, keepdims=True) - logs)).sum(0) * (factors - 1)
    log_factors = torch.as_tensor(np.log(factors))
    return KnownGame(lambda masks: (masks.double() @ log_factors).exp(), _tensor(truth), players)


@known_game("product of random factors")
def products(seed: int) -> KnownGame:
    return product_game(_grid(14), np.exp(0.15 * _random(seed).normal(size=196)))


@known_game("product that falls")
def falling_product(seed: int) -> KnownGame:
    """Falls to nothing within small coalitions, as distances to prototypes do."""
    return product_game(_grid(14), np.exp(-_random(seed).gamma(0.5, 0.15, size=196)))


# Thresholds.


@known_game("airport")
def airport(seed: int) -> KnownGame:
    """v(S) = the largest cost in S: of each step up, those who need it share the cost equally."""
    random = _random(seed)
    costs = random.gamma(2.0, 1.0, size=144)
    order = np.argsort(costs)
    steps = np.diff(costs[order], prepend=0.0) / np.arange(144, 0, -1)
    truth = np.zeros(144)
    truth[order] = np.cumsum(steps)
    table = torch.as_tensor(costs)
    return KnownGame(lambda masks: (masks.double() * table).amax(1), _tensor(truth), _grid(12))


@known_game("weighted voting")
def voting(seed: int) -> KnownGame:
    """One if the weights of those present exceed half of all weights."""
    weights = _random(seed).integers(1, 10, size=100)
    quota = int(weights.sum() // 2) + 1
    return _weight_game(weights, quota, _grid(10))


@known_game("voting by a large majority")
def majority(seed: int) -> KnownGame:
    weights = _random(seed).integers(1, 6, size=100)
    return _weight_game(weights, int(0.9 * weights.sum()), _grid(10))


def _weight_game(weights: np.ndarray, quota: int, players: Players) -> KnownGame:
    truth = shapley_of_weights(weights, lambda total: (total >= quota).astype(float))
    table = torch.as_tensor(weights).double()
    return KnownGame(lambda masks: (masks.double() @ table >= quota).double(), _tensor(truth), players)


@known_game("saturation")
def saturation(seed: int) -> KnownGame:
    """The root of a sum of weights: much at first, little later."""
    weights = _random(seed).integers(0, 8, size=121)
    truth = shapley_of_weights(weights, np.sqrt)
    table = torch.as_tensor(weights).double()
    return KnownGame(lambda masks: (masks.double() @ table).sqrt(), _tensor(truth), _grid(11))


def shapley_of_weights(weights: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Shapley values of function(sum of whole weights): counts of coalitions by size and sum, as a table."""
    n, most = len(weights), int(weights.sum())
    value = function(np.arange(most + 1).astype(float))
    chance = np.zeros(
        (n + 1, most + 1)
    )  # of (size, sum) among coalitions of that size, of all players so far
    truth = np.zeros(n)
    for weight in np.unique(weights):
        others = list(weights)
        others.remove(weight)
        chance[:] = 0
        chance[0, 0] = 1.0
        for count, other in enumerate(others):  # a uniform coalition of size s has the next player by chance
            sizes = np.arange(1, count + 2)[:, None]
            moved = np.zeros((count + 1, most + 1))
            moved[:, other:] = chance[: count + 1, : most + 1 - other]
            stays = 1 - np.arange(count + 2)[:, None] / (count + 1)
            chance[: count + 2] *= stays
            chance[1 : count + 2] += moved * sizes / (count + 1)
        gain = np.zeros(most + 1)
        gain[: most + 1 - weight] = value[weight:] - value[: most + 1 - weight]
        truth[weights == weight] = (chance[:n] @ gain).mean()
    return truth


@known_game("any of some groups")
def groups(seed: int) -> KnownGame:
    """One as soon as all players of any group are there, as a prototype found in one of many places."""
    random = _random(seed)
    sizes = random.integers(3, 9, size=12)
    members = np.split(random.permutation(144)[: sizes.sum()], np.cumsum(sizes)[:-1])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    q, weights = (nodes + 1) / 2, weights / 2
    none = np.prod([1 - q**k for k in sizes], 0)
    truth = np.zeros(144)
    for group, k in zip(members, sizes, strict=True):
        truth[group] = (weights * q ** (k - 1) * none / (1 - q**k)).sum()
    tables = [torch.as_tensor(group) for group in members]

    def function(masks: Tensor) -> Tensor:
        return torch.stack([masks[:, group].all(1) for group in tables], 1).any(1).double()

    return KnownGame(function, _tensor(truth), _grid(12))


@known_game("gloves")
def gloves(seed: int) -> KnownGame:
    """Pairs of a left and a right glove; there are more left ones."""
    from scipy.stats import binom

    left = np.zeros(100, dtype=bool)
    left[_random(seed).choice(100, 60, replace=False)] = True
    nodes, weights = np.polynomial.legendre.leggauss(200)
    q, weights = (nodes + 1) / 2, weights / 2

    def pivotal(own: int, other: int) -> float:
        counts = np.arange(own)[:, None]
        return float((weights * (binom.pmf(counts, own - 1, q) * binom.sf(counts, other, q)).sum(0)).sum())

    truth = np.where(left, pivotal(60, 40), pivotal(40, 60))
    table = torch.as_tensor(left).double()

    def function(masks: Tensor) -> Tensor:
        lefts = masks.double() @ table
        return torch.minimum(lefts, masks.sum(1) - lefts)

    return KnownGame(function, _tensor(truth), _grid(10))


@known_game("max of smooth maps")
def max_of_linear(seed: int) -> KnownGame:
    """The airport game on a smooth map of costs, plus smooth main effects of both signs."""
    random = _random(seed)
    ports = [airport(seed + 100 * k) for k in range(2)]
    values = 0.05 * smooth_map(12, random)

    def function(masks: Tensor) -> Tensor:
        return ports[0].function(masks) - ports[1].function(masks) + masks.double() @ torch.as_tensor(values)

    return KnownGame(function, ports[0].truth - ports[1].truth + torch.as_tensor(values), _grid(12))


__all__ = ["GAMES", "KnownGame"]
