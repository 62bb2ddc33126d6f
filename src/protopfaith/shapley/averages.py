"""Samplers whose values are plain averages: only how one sample is drawn differs between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from protopfaith.shapley.game import Game
from protopfaith.shapley.noise import Noisy
from protopfaith.shapley.sampling import Estimate, Generators, State, checked_state

POWERS = ("sum", "squares", "cubes", "fourths")


class Averages:
    """The mean of independent samples, each an unbiased estimate of all values, with its standard errors.

    Args:
        game: that is played
        state: of an earlier result, to go on from
        draw: one sample, `(outputs, n)`, by a generator of its own
        evaluations: how many a sample takes

    >>> from protopfaith.shapley import ESTIMATORS, Players, estimate
    >>> from protopfaith.shapley.sampling import by_sampling
    >>> @ESTIMATORS.register("alone")
    ... @by_sampling
    ... def alone(game, state):
    ...     def draw(generator):  # what each player does alone: right where players do not act together
    ...         return (game(torch.eye(game.n_players, dtype=torch.bool)) - game.empty).T
    ...     return Averages(game, state, draw, evaluations=game.n_players)
    >>> game = Game(lambda images: images.flatten(1).sum(1), torch.ones(1, 4, 4), Players.windows((4, 4), 2))
    >>> estimate(game, "alone", budget=50).values.tolist()
    [[4.0, 4.0, 4.0, 4.0]]
    >>> del ESTIMATORS["alone"]
    """

    def __init__(
        self, game: Game, state: State, draw: Callable[[torch.Generator], Tensor], *, evaluations: int
    ):
        self.draw, self.smallest, self.least = draw, evaluations, evaluations
        zeros = torch.zeros(game.n_outputs, game.n_players, dtype=torch.float64, device=game.device)
        # Powers of what samples differ from the first one by: what is the same in all leaves no rounding.
        fresh = {name: zeros.clone() for name in ("first", *POWERS)}
        self.kept = checked_state(state, {"count": torch.zeros((), device=game.device), **fresh})

    def round(self, game: Game, most: int, generators: Generators) -> int:
        samples, have = most // self.smallest, int(self.kept["count"])
        for number in range(have, have + samples):
            sample = self.draw(generators[number]).double()
            if number == 0:
                self.kept["first"] = sample
            for power, name in enumerate(POWERS, 1):
                self.kept[name] += (sample - self.kept["first"]) ** power
        self.kept["count"] = self.kept["count"] + samples
        return samples * self.smallest

    def estimate(self, game: Game) -> Estimate:
        count = self.kept["count"].double()
        found = from_powers([self.kept[name] / count for name in POWERS], count).plus(self.kept["first"])
        degrees = float(count) - 1  # one sample tells nothing about its error: 0 / 0, NaN
        variances = found.moderated(likely_variances(found), degrees)
        return Estimate(found.values, variances, found.values.sum(1) - game.total, max(degrees, 1.0))

    def state(self) -> dict[str, Tensor]:
        return self.kept


def from_powers(powers: Sequence[Tensor], count: Tensor) -> Noisy:
    """What `count` samples say, from the means of their first four powers, where the mean is not small."""
    mean, square, cube, fourth = powers
    second = (square - mean.square()).clamp_min(0)
    central = fourth - 4 * mean * cube + 3 * mean.square() * (square + second)
    doubts = (central - second.square()).clamp_min(0) / count / (count - 1).square()
    return Noisy(mean, second / (count - 1), doubts)


def likely_variances(found: Noisy) -> Tensor:
    """What all players together make likely for the variance of each, `(outputs, n)`: the largest of three.

    Their mean; more for players with large values, which vary as much more; and what one contribution would
    add that is as large as those that make most of the variances. For a player that made no difference in any
    order so far (a voter that was never pivotal) may make one in the next.
    """
    mean = found.variances.mean(1, keepdim=True)
    relative = mean / found.values.square().mean(1, keepdim=True).clamp_min(1e-300)
    rare = found.doubts.sum(1, keepdim=True) / found.variances.sum(1, keepdim=True).clamp_min(1e-300)
    return torch.maximum(torch.maximum(mean, rare), relative * found.values.square())
