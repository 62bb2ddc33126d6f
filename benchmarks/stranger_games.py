"""Games as real images and networks make them, written last: `calibration.py --games stranger`.

Sigmoids of unequal inputs, log similarities, templates, pools, parts and their context, several scales at
once, and outputs that were rounded. Values follow from the distribution of sums at every density; those of
outputs with noise and of rounded ones from all coalitions of at most two players and their complements,
which is where single coalitions count (`tests/benchmarks/test_stranger_games.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from known_games import KnownGame, Maker, _grid, _tensor, smooth_map
from outside_games import _densities, by_size, linear, of_counts, parted, plus, quadratic, scaled
from protopfaith.shapley import Players

STRANGER: dict[str, Maker] = {}


def stranger_game(name: str) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        STRANGER[name] = make
        return make

    return add


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 90210])


# Ways to make games.


def of_sum(players: Players, amounts: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> KnownGame:
    """v(S) = function of the sum of the whole numbers in S."""
    low, high = amounts.clip(max=0).sum(), amounts.clip(min=0).sum()
    values = function(np.arange(low, high + 1))
    kinds, kind, counts = np.unique(amounts, return_inverse=True, return_counts=True)
    turns = np.exp(2j * np.pi * np.outer(kinds, np.arange(len(values))) / len(values))  # (kinds, sums)
    others = counts - np.eye(len(kinds), dtype=int)
    gains = np.stack([np.roll(values, -amount) - values for amount in kinds])
    truth = np.zeros(len(kinds))
    for t, weight in zip(*_densities(len(players)), strict=True):
        waves = np.stack([np.prod((1 - t + t * turns) ** rest[:, None], 0) for rest in others])
        chances = np.fft.fft(waves, axis=1).real / len(values)  # of the others' sums, which start at zero
        truth += weight * (np.roll(chances, -low, axis=1) * gains).sum(1)
    table, counted = torch.as_tensor(values), torch.as_tensor(amounts)
    return KnownGame(
        lambda masks: table[(masks.double() @ counted.double()).long() - low], _tensor(truth[kind]), players
    )


def best_template(players: Players, blocks: np.ndarray, levels: np.ndarray) -> KnownGame:
    """The best block; each has a level (blocks, 2 ** size) for each subset of its players."""
    size = blocks.shape[1]
    subsets = np.arange(2**size)[:, None] >> np.arange(size) & 1
    steps = np.unique(levels)
    gaps = np.diff(steps, append=steps[-1])
    rank = np.searchsorted(steps, levels)
    truth = np.zeros(len(players))
    for t, weight in zip(*_densities(len(players)), strict=True):
        chances = np.prod(np.where(subsets, t, 1 - t), 1)
        below = np.stack([np.cumsum(np.bincount(some, chances, len(steps))) for some in rank])
        for b, block in enumerate(blocks):
            higher = gaps * (1 - np.delete(below, b, 0).prod(0))
            best = steps + np.cumsum(higher[::-1])[::-1]  # expected, if this block has at least that
            for j, player in enumerate(block):
                with_it = subsets[:, j] == 1
                gain = best[rank[b, with_it]] - best[rank[b, ~with_it]]
                truth[player] += weight * chances[~with_it] @ gain / (1 - t)
    places, table = torch.as_tensor(blocks), torch.as_tensor(levels)
    bits = 2 ** torch.arange(size)

    def function(masks: Tensor) -> Tensor:
        return table.gather(1, (masks[:, places].long() * bits).sum(2).T).amax(0)

    return KnownGame(function, _tensor(truth), players)


def of_ranks(players: Players, positive: np.ndarray, weights: Sequence[float]) -> KnownGame:
    """The largest values of those present, sorted and weighted: a pool."""
    n, order = len(players), (-positive).argsort()
    sizes = np.append(positive[order], 0.0)
    truth = np.zeros(n)
    for rank, weight in enumerate(weights, 1):
        for among in range(rank, n + 1):  # one of these many has the rank if enough of them are there
            truth[order[:among]] += weight * (sizes[among - 1] - sizes[among]) / among
    values, amounts = torch.as_tensor(positive), torch.tensor(weights, dtype=torch.float64)
    return KnownGame(
        lambda masks: (masks * values).topk(len(weights), dim=1).values @ amounts, _tensor(truth), players
    )


def turned(players: Players, effects: np.ndarray, switch: np.ndarray, needed: int) -> KnownGame:
    """The sum of the effects, whose sign turns unless enough players of another group are there."""
    sign = of_counts(players, [switch], lambda count: torch.where(count >= needed, 1.0, -1.0).double())
    counts = np.arange(len(switch) + 1)
    own = np.where(counts >= needed, 1.0, -1.0).mean()  # the count is uniform when a player outside comes
    truth = own * effects
    # A switch that is pivotal turns what is there: the others' effects at the mean density then.
    size = len(switch)
    truth[switch] += 2 * effects.sum() * needed / (size * (size + 1))
    amounts = torch.as_tensor(effects)
    return KnownGame(lambda masks: sign.function(masks) * (masks.double() @ amounts), _tensor(truth), players)


def redundant(players: Players, groups: Sequence[np.ndarray], weights: Sequence[float]) -> KnownGame:
    """The weights of those groups of which anyone is there."""
    truth = np.zeros(len(players))
    for group, weight in zip(groups, weights, strict=True):
        truth[group] = weight / len(group)
    places = [torch.as_tensor(group) for group in groups]
    amounts = torch.tensor(weights, dtype=torch.float64)
    return KnownGame(
        lambda masks: torch.stack([masks[:, place].any(1) for place in places], 1).double() @ amounts,
        _tensor(truth),
        players,
    )


def altered(game: KnownGame, change: Callable[[Tensor, Tensor], Tensor]) -> KnownGame:
    """Values changed a little in a way that averages out but for coalitions of few sizes."""
    n = len(game.players)

    def function(masks: Tensor) -> Tensor:
        return change(game.function(masks), masks)

    truth = game.truth[0].clone()
    few = torch.zeros(1 + n + n * (n - 1) // 2, n, dtype=torch.bool)
    for row, some in enumerate([(), *((i,) for i in range(n)), *combinations(range(n), 2)]):
        few[row, list(some)] = True
    for masks in (few, ~few):
        error = (function(masks).double() - game.function(masks).double()).nan_to_num()
        x, sizes = masks.double(), masks.sum(1)
        count = torch.bincount(sizes, minlength=n + 1).double()[sizes]  # coalitions of that size
        truth += (x * (error / (count * sizes.clamp_min(1)))[:, None]).sum(0)
        truth -= ((1 - x) * (error / (count * (n - sizes).clamp_min(1)))[:, None]).sum(0)
    return KnownGame(function, truth[None], game.players)


def noise(masks: Tensor) -> Tensor:
    """Of variance one, the same whenever a coalition comes again."""
    random = torch.Generator().manual_seed(5)
    key = masks.double() @ torch.rand(masks.shape[1], generator=random, dtype=torch.float64)
    return ((key * 1e4).frac() - 0.5) * 12**0.5


def _squares(side: int, size: int) -> np.ndarray:
    """The players of the squares that fit into a grid without overlap."""
    many = side // size
    grid = np.arange(side * side).reshape(side, side)[: many * size, : many * size]
    return grid.reshape(many, size, many, size).swapaxes(1, 2).reshape(-1, size * size)


def _similar(distances: np.ndarray) -> np.ndarray:
    return np.log((distances + 1) / (distances + 1e-4))


# The games.


@stranger_game("parts of an object in its context")
def _parts(seed: int) -> KnownGame:
    """At least five of nine parts, times how much of the context is there; the background hurts."""
    players = _grid(14)
    groups = parted(players, (9, 60, 100), _random(seed))
    return of_counts(players, groups, lambda a, b, c: (a >= 5) * (0.3 + b / 60) - 0.004 * c)


@stranger_game("head or body and no clutter")
def _head(seed: int) -> KnownGame:
    players = _grid(14)
    groups = parted(players, (12, 40, 80), _random(seed))
    return of_counts(players, groups, lambda a, b, c: torch.maximum(a / 12, b / 40) ** 2 * torch.exp(-c / 40))


@stranger_game("closest of 16 smooth templates")
def _templates(seed: int) -> KnownGame:
    """Log similarity of the squared distance; a place without its middle is far away."""
    random = _random(seed)
    blocks = _squares(14, 3)
    shape = np.exp(-np.square(np.indices((3, 3)) - 1).sum(0) / 2).reshape(-1)
    weights = shape * random.uniform(0.5, 1.5, size=(len(blocks), 9))
    weights /= weights.sum(1, keepdims=True)
    subsets = np.arange(512)[:, None] >> np.arange(9) & 1
    far = random.uniform(0.05, 1, len(blocks))[:, None] + (1 - subsets @ weights.T).T
    return best_template(_grid(14), blocks, _similar(far))


@stranger_game("smallest distance over patches")
def _distance(seed: int) -> KnownGame:
    random = _random(seed)
    blocks = _squares(12, 2)
    subsets = np.arange(16)[:, None] >> np.arange(4) & 1
    targets = random.normal(size=(len(blocks), 4, 8))
    features = np.einsum("sp,bpf->bsf", subsets, targets)
    goal = targets.sum(1, keepdims=True) + random.exponential(1.5, len(blocks))[:, None, None]
    return best_template(_grid(12), blocks, -np.square(features - goal).mean(2))


@stranger_game("log similarity to one prototype")
def _one_prototype(seed: int) -> KnownGame:
    """Of a distance that adds up: the value soars where the last players come."""
    random = _random(seed)
    amounts = np.round(400 * np.exp(smooth_map(14, random)) / 196).astype(int)
    return of_sum(_grid(14), amounts, lambda s: _similar(1.02 - s / s.max()))


@stranger_game("sigmoid of a smooth map")
def _sigmoid(seed: int) -> KnownGame:
    amounts = np.round(6 * smooth_map(14, _random(seed))).astype(int)
    return of_sum(_grid(14), amounts, lambda s: 1 / (1 + np.exp(-(s - 12) / 20)))


@stranger_game("steep sigmoid of heavy tails")
def _steep(seed: int) -> KnownGame:
    amounts = np.round(2 * _random(seed).standard_t(2, 196)).clip(-60, 60).astype(int)
    return of_sum(_grid(14), amounts, lambda s: 1 / (1 + np.exp(-(s - amounts.sum() / 2) / 1.5)))


@stranger_game("a wave of a sum")
def _wave(seed: int) -> KnownGame:
    amounts = np.round(4 * smooth_map(12, _random(seed)) + 1).astype(int)
    return of_sum(_grid(12), amounts, lambda s: np.sin(s / 25))


@stranger_game("rectifier of a sum, 400 players")
def _rectifier(seed: int) -> KnownGame:
    amounts = np.round(3 * _random(seed).normal(size=400)).astype(int)
    return of_sum(_grid(20), amounts, lambda s: (s - 40).clip(0).astype(float))


@stranger_game("mean of the ten best places")
def _top(seed: int) -> KnownGame:
    return of_ranks(_grid(14), np.exp(smooth_map(14, _random(seed))), [0.1] * 10)


@stranger_game("third best minus best")
def _third(seed: int) -> KnownGame:
    return of_ranks(_grid(14), _random(seed).exponential(size=196), [-1, 0, 2])


@stranger_game("mean color of what is there")
def _color(seed: int) -> KnownGame:
    """A network that sees only the mean of what is not masked; nothing is black."""
    colors = 0.3 + smooth_map(14, _random(seed))
    return by_size(_grid(14), colors / 196, lambda share: 1 / share.clip(1 / 196))


@stranger_game("context that turns the sign")
def _context(seed: int) -> KnownGame:
    random = _random(seed)
    effects = random.normal(size=196) + 0.2
    switch = random.choice(196, 7, replace=False)
    effects[switch] = 0
    return turned(_grid(14), effects, switch, 3)


@stranger_game("edges of the mask")
def _edges(seed: int) -> KnownGame:
    """A sigmoid, less what each border between present and absent neighbors costs."""
    grid = np.arange(196).reshape(14, 14)
    borders = np.zeros((196, 196))
    for a, b in ((grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1])):
        borders[a, a] += 0.01
        borders[b, b] += 0.01
        borders[a, b] -= 0.02
    return plus(_sigmoid(seed), scaled(quadratic(_grid(14), borders), -1))


@stranger_game("redundant pairs")
def _pairs(seed: int) -> KnownGame:
    """Neighbors that say the same, some with opposite sign, and a few that say it with four voices."""
    random = _random(seed)
    order = random.permutation(196)
    groups = [*order[:80].reshape(40, 2), *order[80:160].reshape(20, 4)]
    return redundant(_grid(14), groups, random.standard_t(3, 60).tolist())


@stranger_game("multiplicative noise")
def _multiplicative(seed: int) -> KnownGame:
    return altered(_sigmoid(seed), lambda v, masks: v * (1 + 0.1 * noise(masks)))


@stranger_game("rounded to half precision")
def _half(seed: int) -> KnownGame:
    game = plus(linear(_grid(14), _random(seed).normal(size=196)), scaled(_sigmoid(seed), 20))
    return altered(game, lambda v, _: v.half())


@stranger_game("rounded to bfloat16")
def _brain(seed: int) -> KnownGame:
    return altered(scaled(_sigmoid(seed), 5, 10), lambda v, _: v.bfloat16())


@stranger_game("almost constant in float32")
def _constant(seed: int) -> KnownGame:
    return altered(scaled(_one_prototype(seed), 1e-4, 100), lambda v, _: v.float())


@stranger_game("scales of a millionth and a million")
def _scales(seed: int) -> KnownGame:
    """Two outputs of other size, and one of both at once."""
    small = scaled(_sigmoid(seed), 1e-6)
    large = scaled(of_counts(_grid(14), [np.array([3, 77, 150])], lambda a: (a >= 2).double()), 1e6)
    ones = linear(_grid(14), _random(seed).normal(size=196))
    games = [small, large, plus(ones, scaled(large, 1e-2))]
    return KnownGame(
        lambda masks: torch.stack([game.function(masks) for game in games], 1),
        torch.cat([game.truth for game in games]),
        small.players,
    )


@stranger_game("16 players, four of whom act at once")
def _sixteen(seed: int) -> KnownGame:
    players = _grid(4)
    groups = parted(players, (4, 6, 6), _random(seed))
    return of_counts(players, groups, lambda a, b, c: (a == 4) * (1 + b / 6) - (c > 3) * 0.2)


@stranger_game("20 players and a sigmoid")
def _twenty(seed: int) -> KnownGame:
    amounts = np.round(5 * _random(seed).standard_t(3, 20)).astype(int)
    return of_sum(
        Players.windows((4, 5), 1), amounts, lambda s: 1 / (1 + np.exp(-(s - amounts.sum() / 2) / 3))
    )


@stranger_game("1,000 players, thirty of whom matter")
def _thousand(seed: int) -> KnownGame:
    players = Players.windows((25, 40), 1)
    groups = parted(players, (10, 20, 400), _random(seed))
    return of_counts(players, groups, lambda a, b, c: a / 10 * (0.5 + b / 20) - 0.2 * (c / 400) ** 2)


@stranger_game("961 players under a sigmoid")
def _many(seed: int) -> KnownGame:
    amounts = np.round(1.5 * smooth_map(31, _random(seed), 4)).astype(int)
    return of_sum(_grid(31), amounts, lambda s: 1 / (1 + np.exp(-(s - 20) / 30)))
