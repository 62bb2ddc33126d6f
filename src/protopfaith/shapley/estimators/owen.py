"""Owen sampling: the covariance between the function and a player's presence, over all densities."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.attribution import redistribute
from protopfaith.shapley.densities import anchored_mean, membership_weights, remove_mean
from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.game import Game
from protopfaith.shapley.noise import Noisy, powers
from protopfaith.shapley.sampling import (
    DRAWN,
    Estimate,
    Generators,
    Sampler,
    State,
    blocks,
    by_block,
    by_sampling,
    checked_state,
)

SUMS = ("sum", "squares", "fourths")


@ESTIMATORS.register("owen", description="estimated by hiding random sets of regions")
@by_sampling
def owen(game: Game, state: State, *, nodes: int | None = None) -> Sampler:
    r"""$\psi_i = \int_0^1 \mathrm{Cov}_q(v(S), 1[i \in S]) / (q (1-q)) \, dq$, by sampling.

    Every mask has a density q of its own, stratified over (0, 1), so no node is fixed and nothing is
    biased. Given its size s a mask is uniform among all of that size, whatever q was; the realized density
    s/n therefore replaces q, which bounds the weights and makes each sample's contributions sum to zero:
    the values sum to the total by themselves. The function's mean at that density, from the other samples,
    is subtracted first.

    With `nodes` the densities are that many Gauss-Legendre nodes instead (the textbook form): biased for
    what happens between them, and its sum is off until the residual is redistributed.
    """
    return _Sizes(game, state) if nodes is None else _Nodes(game, nodes, state)


class _Sizes:
    """Stratified densities; sums of contributions, of their squares and of their fourth powers."""

    smallest, least = 1, 32

    def __init__(self, game: Game, state: State):
        zeros = torch.zeros(game.n_outputs, game.n_players, dtype=torch.float64, device=game.device)
        fresh = {
            "count": torch.zeros((), dtype=torch.float64, device=game.device),
            "sum": zeros,
            "squares": zeros.clone(),
            "fourths": zeros.clone(),
            **anchored_mean(game),
        }
        self.kept = checked_state(state, fresh)

    def round(self, game: Game, most: int, generators: Generators) -> int:
        for size in blocks(most, game.n_players):
            x = stratified_masks(int(self.kept["count"]), size, game.n_players, generators)
            density = x.double().mean(1)
            residuals = remove_mean(self.kept, density, game(x).double())
            weights = membership_weights(x)
            for name, (r, w) in zip(SUMS, powers(residuals, weights), strict=True):
                self.kept[name] += r.T @ w
            self.kept["count"] += size
        return most

    def estimate(self, game: Game) -> Estimate:
        n = game.n_players
        sums, squares, fourths = (self.kept[name] for name in SUMS)
        found = Noisy.from_sums(sums, squares, fourths, self.kept["count"])
        # Sizes are uniform on 0 ... n; those two carry the total, which needs no estimate, in equal shares.
        scale = (n + 1) / n
        values = scale * found.values + game.total[:, None] / n
        return Estimate(values, scale**2 * found.moderated(), values.sum(1) - game.total)

    def state(self) -> dict[str, Tensor]:
        return self.kept


class _Nodes:
    """Fixed nodes; per node the moments of values and presence."""

    def __init__(self, game: Game, nodes: int, state: State):
        if nodes < 1:
            raise ProtoPFaithError(f"Owen sampling with {nodes} nodes samples nothing; give at least one.")
        self.smallest, self.least = nodes, 16 * nodes
        points, weights = np.polynomial.legendre.leggauss(nodes)
        kind: dict[str, Any] = {"dtype": torch.float64, "device": game.device}
        self.q = torch.tensor((points + 1) / 2, **kind)
        self.weights = torch.tensor(weights / 2, **kind)
        outputs, n = game.n_outputs, game.n_players
        shapes = {
            "count": (1,),
            "y": (nodes, outputs),
            "yy": (nodes, outputs),
            "a": (nodes, n),
            "aa": (nodes, n),
            "ya": (nodes, outputs, n),
            "yaa": (nodes, outputs, n),
            "yya": (nodes, outputs, n),
            "yyaa": (nodes, outputs, n),
        }
        fresh = {name: torch.zeros(shape, **kind) for name, shape in shapes.items()}
        self.kept = checked_state(state, fresh)

    def round(self, game: Game, most: int, generators: Generators) -> int:
        nodes = len(self.q)
        count = most // nodes * nodes

        def draw(number: int) -> Tensor:
            shape = (DRAWN, nodes, game.n_players)
            return torch.rand(shape, generator=generators[number], device=game.device)

        for size in blocks(count, game.n_players, nodes):
            uniform = by_block(int(self.kept["count"]), size // nodes, draw).transpose(0, 1)
            x = uniform < self.q[:, None, None]
            y = game(x.reshape(size, -1)).double().reshape(nodes, size // nodes, -1) - game.empty.double()
            a = x.double() - self.q[:, None, None]
            yt = y.transpose(1, 2)
            sums = {
                "count": torch.full_like(self.kept["count"], size // nodes),
                "y": y.sum(1),
                "yy": y.square().sum(1),
                "a": a.sum(1),
                "aa": a.square().sum(1),
                "ya": yt @ a,
                "yaa": yt @ a.square(),
                "yya": yt.square() @ a,
                "yyaa": yt.square() @ a.square(),
            }
            for name, term in sums.items():
                self.kept[name] = self.kept[name] + term
        return count

    def estimate(self, game: Game) -> Estimate:
        count = self.kept["count"]
        m = {name: total / count for name, total in self.kept.items() if name != "count"}
        y, a = m["y"][..., None], m["a"][:, None]
        cov = m["ya"] - y * a
        # Second moment of (y - mean)(a - mean), expanded, so that one pass over the samples is enough.
        square = (
            m["yyaa"]
            - 2 * a * m["yya"]
            - 2 * y * m["yaa"]
            + a.square() * m["yy"][..., None]
            + y.square() * m["aa"][:, None]
            + 4 * y * a * m["ya"]
            - 3 * y.square() * a.square()
        )
        scale = (self.weights / (self.q * (1 - self.q)))[:, None, None]
        raw = (scale * cov * count / (count - 1)).sum(0)
        variances = (scale.square() * (square - cov.square()).clamp_min(0)).sum(0) / (count - 1)
        values, left = redistribute(raw, variances, game.total)
        return Estimate(values, left, raw.sum(1) - game.total)

    def state(self) -> dict[str, Tensor]:
        return self.kept


def stratified_masks(start: int, count: int, n: int, generators: Generators) -> Tensor:
    """Bernoulli masks `(count, n)` from number `start` on; within a block their densities are stratified over
    (0, 1), in random order."""

    def draw(number: int) -> Tensor:
        generator, device = generators[number], generators.device
        strata = torch.randperm(DRAWN, generator=generator, device=device)
        q = (strata + torch.rand(DRAWN, generator=generator, device=device)) / DRAWN
        return torch.rand(DRAWN, n, generator=generator, device=device) < q[:, None]

    return by_block(start, count, draw)
