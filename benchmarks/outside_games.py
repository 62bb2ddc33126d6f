"""Games with known Shapley values by someone who had not seen the others: `calibration.py --games outside`.

Most are functions of how many players of a few groups are there, products of factors, or rules; their values
follow from integrals over the density or from counting (`tests/benchmarks/test_outside_games.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import factorial

import numpy as np
import torch
from torch import Tensor

from known_games import KnownGame, Maker, _grid, _main, _tensor, smooth_map, unanimity_sum
from protopfaith.shapley import Players

OUTSIDE: dict[str, Maker] = {}


def outside_game(name: str) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        OUTSIDE[name] = make
        return make

    return add


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 4711])


def _densities(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights that integrate polynomials over 0 to 1 exactly."""
    nodes, weights = np.polynomial.legendre.leggauss(degree // 2 + 1)
    return (nodes + 1) / 2, weights / 2


# Ways to make games.


def of_counts(players: Players, groups: Sequence[np.ndarray], function: Callable[..., Tensor]) -> KnownGame:
    """v(S) = function of how many players of each group are there; all others do nothing."""
    from scipy.stats import binom

    t, weights = _densities(sum(map(len, groups)))
    truth = np.zeros(len(players))
    for j, group in enumerate(groups):
        others = [len(some) - (j == k) for k, some in enumerate(groups)]
        counts = torch.meshgrid(*(torch.arange(most + 1).double() for most in others), indexing="ij")
        more = [count + (j == k) for k, count in enumerate(counts)]
        gain = np.broadcast_to((function(*more) - function(*counts)).numpy(), (len(t), *counts[0].shape))
        for most in others:
            gain = np.einsum("tc,tc...->t...", binom.pmf(np.arange(most + 1), most, t[:, None]), gain)
        truth[group] = weights @ gain
    places = [torch.as_tensor(group) for group in groups]
    return KnownGame(
        lambda masks: function(*(masks[:, place].double().sum(1) for place in places)),
        _tensor(truth),
        players,
    )


def parted(players: Players, sizes: Sequence[int], random: np.random.Generator) -> list[np.ndarray]:
    """Random groups of these sizes."""
    return np.split(random.permutation(len(players))[: sum(sizes)], np.cumsum(sizes)[:-1])


def of_factors(players: Players, factors: np.ndarray) -> KnownGame:
    """v(S) = the product of the factors in S: psi_i = (f_i - 1) times the mean of all others'."""
    t, weights = _densities(len(players))
    terms = 1 - t[:, None] + t[:, None] * factors
    others = terms.prod(1, keepdims=True) / terms
    logs = torch.as_tensor(factors).log()
    return KnownGame(
        lambda masks: (masks.double() @ logs).exp(), _tensor((factors - 1) * (weights @ others)), players
    )


def of_rules(
    players: Players, rules: Sequence[tuple[np.ndarray, np.ndarray, float]], main: np.ndarray
) -> KnownGame:
    """Main effects, and a weight for each rule: all players of one group are there and none of another."""
    truth = main.copy()
    for present, absent, weight in rules:
        a, b = len(present), len(absent)
        truth[present] += weight * factorial(a - 1) * factorial(b) / factorial(a + b)
        truth[absent] -= weight * factorial(a) * factorial(b - 1) / factorial(a + b) if b else 0
    signs = torch.zeros(len(rules), len(players), dtype=torch.float64)
    for sign, (present, absent, _) in zip(signs, rules, strict=True):
        sign[present], sign[absent] = 1, -1
    needed = (signs > 0).sum(1)
    amounts = torch.tensor([weight for *_, weight in rules], dtype=torch.float64)
    effects = torch.as_tensor(main)
    return KnownGame(
        lambda masks: (masks.double() @ signs.T == needed).double() @ amounts + masks.double() @ effects,
        _tensor(truth),
        players,
    )


def quadratic(players: Players, matrix: np.ndarray) -> KnownGame:
    """x' Q x: each player has its row's and its column's mean."""
    q = torch.as_tensor(matrix)
    return KnownGame(
        lambda masks: ((masks.double() @ q) * masks.double()).sum(1),
        _tensor((matrix.sum(0) + matrix.sum(1)) / 2),
        players,
    )


def by_size(players: Players, effects: np.ndarray, gain: Callable[[np.ndarray], np.ndarray]) -> KnownGame:
    """v(S) = the sum of the effects in S times gain(|S| / n)."""
    n = len(players)
    gains = gain(np.arange(n + 1) / n)
    own = gains[1:].mean()  # of a player's effect when it comes itself; the others share the rest
    shared = (gains[-1] - own) / (n - 1)
    truth = own * effects + shared * (effects.sum() - effects)
    table, amounts = torch.as_tensor(gains), torch.as_tensor(effects)
    return KnownGame(lambda masks: (masks.double() @ amounts) * table[masks.sum(1)], _tensor(truth), players)


def plus(*games: KnownGame) -> KnownGame:
    return KnownGame(
        lambda masks: sum(game.function(masks) for game in games),  # type: ignore[arg-type, return-value]
        sum(game.truth for game in games),  # type: ignore[arg-type]
        games[0].players,
    )


def scaled(game: KnownGame, factor: float, offset: float = 0.0) -> KnownGame:
    return KnownGame(lambda masks: factor * game.function(masks) + offset, factor * game.truth, game.players)


def linear(players: Players, effects: np.ndarray) -> KnownGame:
    return unanimity_sum(players, _main(effects))


def best_of(players: Players, blocks: np.ndarray, weights: np.ndarray, power: float) -> KnownGame:
    """The best block, each worth its weight times a power of the share of its players: a closest patch."""
    size = blocks.shape[1]
    levels = weights[:, None] * (np.arange(size + 1) / size) ** power  # (blocks, counts)
    t, masses = _densities(len(players))
    from scipy.stats import binom

    upto = binom.cdf(np.arange(-1, size + 1), size, t[:, None])  # (t, count + 1): fewer than so many
    steps = np.unique(levels)
    truth = np.zeros(len(players))
    for low, high in pairwise(steps):
        needed = (levels < high - 1e-12).sum(1)  # players of each block that lift it to `high`
        below = upto[:, needed]
        for b in np.flatnonzero(needed <= size):
            pivotal = binom.pmf(needed[b] - 1, size - 1, t)
            truth[blocks[b]] += (high - low) * (masses @ (pivotal * np.delete(below, b, 1).prod(1)))
    places, table = torch.as_tensor(blocks), torch.as_tensor(levels)

    def function(masks: Tensor) -> Tensor:
        counts = masks[:, places].sum(2)  # (m, blocks)
        return table.gather(1, counts.T).amax(0)

    return KnownGame(function, _tensor(truth), players)


def range_of(players: Players, positions: np.ndarray) -> KnownGame:
    """The largest minus the smallest position of those present: two airports."""

    def airport(costs: np.ndarray) -> np.ndarray:
        order = costs.argsort()
        steps = np.diff(costs[order], prepend=0.0)
        values = np.empty(len(costs))
        values[order] = np.cumsum(steps / np.arange(len(costs), 0, -1))
        return values

    far = torch.as_tensor(positions)

    def function(masks: Tensor) -> Tensor:
        most = torch.where(masks, far, -torch.inf).amax(1)
        least = torch.where(masks, far, torch.inf).amin(1)
        return torch.where(masks.any(1), most - least, 0.0)

    return KnownGame(function, _tensor(airport(positions) + airport(-positions)), players)


def quorums(players: Players, groups: np.ndarray, weights: np.ndarray, needed: Sequence[int]) -> KnownGame:
    """The weights of those groups (k, size) of which enough players are there."""
    truth = np.zeros(len(players))
    truth[groups] = weights[:, None] / groups.shape[1]
    places, amounts, least = torch.as_tensor(groups), torch.as_tensor(weights), torch.as_tensor(needed)
    return KnownGame(
        lambda masks: (masks[:, places].sum(2) >= least).double() @ amounts, _tensor(truth), players
    )


def _tiles(side: int, tile: int) -> np.ndarray:
    """The players of each tile of a square grid, (tiles, tile * tile)."""
    grid = np.arange(side * side).reshape(side // tile, tile, side // tile, tile)
    return grid.swapaxes(1, 2).reshape(-1, tile * tile)


# The games.


@outside_game("market of three goods")
def _market(seed: int) -> KnownGame:
    """A recipe takes one player of each of three kinds, of which there are 40, 60 and 96."""
    players = _grid(14)
    groups = parted(players, (40, 60, 96), _random(seed))
    return of_counts(players, groups, lambda a, b, c: torch.minimum(torch.minimum(a, b), c))


@outside_game("estate with three kinds of claims")
def _estate(seed: int) -> KnownGame:
    players = _grid(12)
    groups = parted(players, (90, 40, 14), _random(seed))
    return of_counts(players, groups, lambda a, b, c: (a + 3 * b + 10 * c - 210).clamp_min(0))


@outside_game("range of positions")
def _range(seed: int) -> KnownGame:
    return range_of(_grid(14), _random(seed).standard_t(2, 196))


@outside_game("parliament with three large parties")
def _parliament(seed: int) -> KnownGame:
    players = _grid(12)
    groups = parted(players, (1, 2, 141), _random(seed))
    return of_counts(players, groups, lambda a, b, c: (50 * a + 25 * b + c > 130).double())


@outside_game("quorum in each group")
def _quorum(seed: int) -> KnownGame:
    random, players = _random(seed), _grid(14)
    groups = np.stack(parted(players, (14,) * 14, random))
    return quorums(players, groups, random.standard_t(3, 14), random.integers(2, 14, 14))


@outside_game("linear and one threshold")
def _threshold(seed: int) -> KnownGame:
    players = _grid(14)
    step = of_counts(players, [np.arange(196)], lambda a: 30 * (a >= 120).double())
    return plus(linear(players, _random(seed).normal(size=196)), step)


@outside_game("product of three means")
def _means(seed: int) -> KnownGame:
    players = _grid(14)
    groups = parted(players, (20, 50, 80), _random(seed))
    return of_counts(players, groups, lambda a, b, c: a / 20 * b / 50 * c / 80)


@outside_game("random quadratic form")
def _random_quadratic(seed: int) -> KnownGame:
    return quadratic(_grid(16), _random(seed).normal(size=(256, 256)))


@outside_game("smooth quadratic form")
def _smooth_quadratic(seed: int) -> KnownGame:
    random, players = _random(seed), _grid(14)
    maps = 0.3 + np.stack([smooth_map(14, random) for _ in range(6)])
    return quadratic(players, maps.T @ np.diag([3, -2, 1, -1, 0.5, 0.2]) @ maps)


@outside_game("neuron for and against")
def _neuron(seed: int) -> KnownGame:
    players = _grid(14)
    groups = parted(players, (98, 98), _random(seed))
    return of_counts(players, groups, lambda a, b: torch.sigmoid(0.4 * (a - b) - 1))


@outside_game("tanh of unequal inputs")
def _tanh(seed: int) -> KnownGame:
    players = _grid(14)
    groups = parted(players, (6, 40, 150), _random(seed))
    return of_counts(players, groups, lambda a, b, c: torch.tanh(0.6 * a - 0.1 * b + 0.01 * c))


@outside_game("noisy or of a smooth map")
def _noisy_or(seed: int) -> KnownGame:
    chances = 0.2 / (1 + np.exp(3 - 2 * smooth_map(14, _random(seed))))
    return scaled(of_factors(_grid(14), 1 - chances), -1, 1)


@outside_game("noisy or with few strong causes")
def _causes(seed: int) -> KnownGame:
    random = _random(seed)
    chances = np.full(196, 0.003)
    chances[random.choice(196, 5, replace=False)] = 0.5
    return scaled(of_factors(_grid(14), 1 - chances), -1, 1)


@outside_game("growth against decay")
def _growth(seed: int) -> KnownGame:
    random, players = _random(seed), _grid(14)
    up, down = (np.exp(0.03 * random.exponential(size=196)) for _ in range(2))
    return plus(scaled(of_factors(players, up), 0.1), scaled(of_factors(players, 1 / down), 3))


@outside_game("Cauchy effects and rules")
def _cauchy(seed: int) -> KnownGame:
    random = _random(seed)
    picks = [random.choice(144, 3, replace=False) for _ in range(100)]
    weights = random.standard_cauchy(100)
    rules = [(pick[:2], pick[2:], float(weight)) for pick, weight in zip(picks, weights, strict=True)]
    return of_rules(_grid(12), rules, random.standard_cauchy(144))


@outside_game("forest of rules")
def _forest(seed: int) -> KnownGame:
    """120 leaves of trees, 4 to 7 deep, among 60 of 225 players."""
    random = _random(seed)
    rules = []
    for _ in range(120):
        depth, some = random.integers(4, 8), random.choice(60, 8, replace=False)
        cut = random.integers(1, depth)
        rules.append((some[:cut], some[cut:depth], float(random.normal())))
    return of_rules(_grid(15), rules, np.zeros(225))


@outside_game("a billionth")
def _tiny(seed: int) -> KnownGame:
    return scaled(plus(OUTSIDE["forest of rules"](seed), linear(_grid(15), np.linspace(-1, 1, 225))), 1e-9)


@outside_game("a billion")
def _huge(seed: int) -> KnownGame:
    return scaled(OUTSIDE["best of 49 patches"](seed), 1e9, -3e9)


@outside_game("small beside its offset")
def _offset(seed: int) -> KnownGame:
    """In single precision: a hundred thousandth of the values is what changes."""
    game = scaled(OUTSIDE["best of 49 patches"](seed), 1.0, 1e4)
    return KnownGame(lambda masks: game.function(masks).float(), game.truth, game.players)


@outside_game("best of 49 patches")
def _patches(seed: int) -> KnownGame:
    blocks = _tiles(14, 2)
    return best_of(_grid(14), blocks, _random(seed).gamma(2.0, size=49), 2.0)


@outside_game("best of nine parts")
def _parts(seed: int) -> KnownGame:
    blocks = _tiles(12, 4)
    return best_of(_grid(12), blocks, np.linspace(1, 2, 9)[_random(seed).permutation(9)], 1.0)


@outside_game("three of 400 act")
def _three(seed: int) -> KnownGame:
    players, some = _grid(20), _random(seed).choice(400, 3, replace=False)
    main = np.zeros(400)
    main[some[:2]] = 2.0, -1.0
    return of_rules(players, [(some, some[:0], 1.5)], main)


@outside_game("two keys")
def _keys(seed: int) -> KnownGame:
    """Two players let all others count, who have a smooth map."""
    random, players = _random(seed), _grid(14)
    map_ = np.maximum(smooth_map(14, random), -0.3)
    rules = [(np.array([5, 100, i]), np.array([], int), map_[i]) for i in range(196) if i not in (5, 100)]
    return of_rules(players, rules, 0.1 * random.normal(size=196))


@outside_game("cells of very unequal size")
def _cells(seed: int) -> KnownGame:
    """Superpixels whose areas follow a power law: what is covered saturates."""
    random = _random(seed)
    areas = np.minimum((random.pareto(1.0, 120) + 1).astype(int), 400)
    labels = np.repeat(np.arange(120), areas)
    width = 40
    labels = np.pad(labels, (0, -len(labels) % width), mode="edge").reshape(-1, width)
    players = Players(torch.as_tensor(labels))
    covered = np.bincount(labels.reshape(-1)) / labels.size
    return scaled(of_factors(players, np.exp(-4 * covered)), -1, 1)


@outside_game("sharp edges, more with more")
def _edges(seed: int) -> KnownGame:
    """A map of flat pieces whose effects count more the more players are there."""
    random = _random(seed)
    places, values = random.random((7, 2)) * 16, random.normal(size=7) * 2
    rows, columns = np.divmod(np.arange(256), 16)
    nearest = np.hypot(rows[:, None] - places[:, 0], columns[:, None] - places[:, 1]).argmin(1)
    return by_size(_grid(16), values[nearest], lambda p: 0.2 + p**3)


@outside_game("all but a tenth needed")
def _late(seed: int) -> KnownGame:
    return by_size(_grid(14), _random(seed).normal(size=196) + 0.3, lambda p: (p > 0.9).astype(float))


@outside_game("sign that turns")
def _turning(seed: int) -> KnownGame:
    """Effects of small coalitions have the other sign in large ones."""
    return by_size(_grid(14), _random(seed).normal(size=196), lambda p: np.cos(3 * p))


@outside_game("two kinds of players")
def _kinds(seed: int) -> KnownGame:
    """Concave in a sum of equal players and of others that count three times."""
    players = _grid(15)
    return of_counts(players, parted(players, (200, 25), _random(seed)), lambda a, b: (a + 3 * b).sqrt())


@outside_game("hash")
def _hash(seed: int) -> KnownGame:
    """Parities of large groups look like noise and add nothing to any value; a linear game is below."""
    random, players = _random(seed), _grid(14)
    groups = torch.zeros(196, 64, dtype=torch.float64)
    for group in groups.T:
        group[torch.as_tensor(random.choice(196, 2 * int(random.integers(15, 40)), replace=False))] = 1
    weights = torch.as_tensor(random.normal(size=64))

    def noise(masks: Tensor) -> Tensor:
        return (1 - 2 * ((masks.double() @ groups) % 2)) @ weights * 0.25

    return plus(linear(players, random.normal(size=196)), KnownGame(noise, _tensor(np.zeros(196)), players))


@outside_game("mixed scales and twins")
def _mixed(seed: int) -> KnownGame:
    """Outputs from a thousandth to a thousand, two that are equal, one that is another's negative."""
    players = _grid(14)
    first = OUTSIDE["noisy or of a smooth map"](seed)
    second = OUTSIDE["best of 49 patches"](seed)
    third = linear(players, _random(seed).standard_t(3, 196))
    games = [scaled(first, 1e-3), second, second, scaled(second, -1), scaled(third, 1e3), plus(first, third)]
    return KnownGame(
        lambda masks: torch.stack([game.function(masks) for game in games], 1),
        torch.cat([game.truth for game in games]),
        players,
    )
