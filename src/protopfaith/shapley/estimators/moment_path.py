"""Shapley values of all players from one backward pass per density, by moment propagation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import fused
from protopfaith.moments.draws import Independent, sketch
from protopfaith.moments.presence import PlayerImage
from protopfaith.shapley.attribution import Attribution
from protopfaith.shapley.estimation import ESTIMATORS, Progress, finish
from protopfaith.shapley.game import Game
from protopfaith.shapley.moment_passes import fitting, in_batches, moment_pass, player_image

NODES = 32
PULLED_AT_ONCE = 16  # outputs whose gradients go back through the first layer together


@ESTIMATORS.register("moment_path")
def moment_path(
    game: Game,
    *,
    budget: int = 4096,
    precision: float | None = None,
    seed: int = 0,
    resume: Attribution | None = None,
    progress: Progress | None = None,
    nodes: int = NODES,
    factors: int = 0,
    batch_size: int | None = None,
    fuse: bool = False,
) -> Attribution:
    r""":math:`\psi_i = \int_0^1 \partial F / \partial q_i (q, ..., q) \, dq`, F(q) the expectation of f
    when every player is present with its probability q_i, independently (Owen's multilinear extension).

    F comes from moment propagation, which is differentiable: a backward pass gives all players at once, so
    the cost is nodes times outputs, not players. The integral is taken over :math:`\theta`, :math:`q =
    \sin^2 \theta`, since the integrand grows like a square root's derivative at both ends, by
    Gauss-Legendre nodes. Its sum over players must be F(1) - F(0), and that holds for every part of the
    path: parts where it does not are halved until the gaps, added up, are at most ``precision`` times the
    range that F runs through, or ``budget`` passes are spent.

    Without ``precision`` there is one part with ``nodes`` nodes. The values are not redistributed: the
    completeness gap is what the nodes leave. ``evaluations`` counts all moment passes, the options record
    the nodes of the final rule.
    """
    if nodes < 1:
        raise ProtoPFaithError(f"The path was asked with {nodes} nodes; give at least one.")
    path = _Path(game, factors, batch_size, seed)
    with fused(fuse):
        parts = [path.part(0.0, math.pi / 2, nodes, game.empty.double(), game.grand.double())]
        while precision is not None and _error(parts) > precision and path.passes < budget:
            parts = _refined(path, parts, precision, nodes, budget)
            if progress is not None:
                progress(min(path.passes, budget), budget)
    values = torch.stack([part.values for part in parts]).sum(0)
    error = _error(parts)
    result = finish(
        game,
        "moment_path",
        values,
        torch.full_like(values, torch.nan),
        evaluations=path.passes,
        seed=seed,
        options={"nodes": sum(part.nodes for part in parts), "factors": factors},
    )
    return replace(result, precision=error, reached=precision is None or error <= precision)


@dataclass
class _Part:
    """A part of the path: what it adds to the values, and by how much it misses its share of the total."""

    start: float
    end: float
    nodes: int
    at_start: Tensor  # F, (outputs,)
    at_end: Tensor
    values: Tensor  # (outputs, n)
    low: Tensor  # of F on this part, (outputs,)
    high: Tensor

    @property
    def gap(self) -> Tensor:
        return self.values.sum(1) - (self.at_end - self.at_start)


class _Path:
    """F and its derivative along the diagonal."""

    def __init__(self, game: Game, factors: int, batch_size: int | None, seed: int):
        self.game, self.image, self.passes = game, player_image(game), 0
        self.directions = None
        if factors:
            self.directions = sketch(game.players.labels, factors, seed).to(game.image)
        self.batch_size = batch_size

    @torch.no_grad()
    def value(self, theta: float) -> Tensor:
        """F at one point, (outputs,)."""
        draw = Independent(torch.tensor([math.sin(theta) ** 2], device=self.game.device), self.directions)
        self.passes += 1
        return moment_pass(self.game, self.image.drawn(draw))[0].double()

    def part(self, start: float, end: float, nodes: int, at_start: Tensor, at_end: Tensor) -> _Part:
        """The integral of the derivative from ``start`` to ``end``."""
        points, weights = np.polynomial.legendre.leggauss(nodes)
        theta = start + (points + 1) / 2 * (end - start)
        probability = torch.from_numpy(np.sin(theta) ** 2).to(self.game.device)
        weight = torch.from_numpy(weights / 2 * (end - start) * np.sin(2 * theta)).to(self.game.device)
        values = probability.new_zeros(self.game.n_outputs, self.game.n_players)
        means = [torch.stack([at_start, at_end])]

        def add(numbers: Tensor) -> Tensor:
            mean, derivative = _derivative(
                self.game, self.image, probability[numbers], weight[numbers], self.directions
            )
            return torch.cat([mean.double().flatten(), derivative.double().flatten()])

        if self.batch_size is None:
            self.batch_size = fitting(self.game, add)
        for numbers, found in in_batches(add, 0, nodes, size=self.batch_size, device=self.game.device):
            count = len(numbers) * self.game.n_outputs
            means.append(found[:count].reshape(-1, self.game.n_outputs))
            values += found[count:].reshape_as(values)
        self.passes += nodes
        every = torch.cat(means)
        return _Part(start, end, nodes, at_start, at_end, values, every.amin(0), every.amax(0))


def _derivative(
    game: Game, image: PlayerImage, probability: Tensor, weight: Tensor, directions: Tensor | None
) -> tuple[Tensor, Tensor]:
    """F at every probability, (B, outputs), and the weighted sum of its derivatives, (outputs, n)."""
    with torch.enable_grad():
        draw = Independent(probability, directions)
        mean = moment_pass(game, image.drawn(draw))
        weighted = (mean * weight[:, None].to(mean.dtype)).sum(0)
        leaves, pulled = draw.leaves(), []
        for some in range(0, len(weighted), PULLED_AT_ONCE):
            chosen = weighted[some : some + PULLED_AT_ONCE]
            pulled.append(draw.derivatives([draw.summed(_gradients(one, leaves)) for one in chosen]))
    return mean.detach(), torch.cat(pulled)


def _gradients(output: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """The gradient of one number by the leaves, zero where it does not depend on them."""
    if not output.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(output, leaves, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, leaves, strict=True)]


def _error(parts: Sequence[_Part]) -> float:
    """The parts' gaps, added up regardless of sign, relative to the range of F, for the worst output."""
    gap = torch.stack([part.gap.abs() for part in parts]).sum(0)
    span = _range(parts)
    return float(torch.where(gap > 0, gap / span.clamp_min(1e-30), torch.zeros_like(gap)).max())


def _range(parts: Sequence[_Part]) -> Tensor:
    return torch.stack([p.high for p in parts]).amax(0) - torch.stack([p.low for p in parts]).amin(0)


def _refined(path: _Path, parts: Sequence[_Part], precision: float, nodes: int, budget: int) -> list[_Part]:
    """Halves every part that has more than its share of the gap: at least the worst one."""
    span = _range(parts).clamp_min(1e-30)
    shares = [float((part.gap.abs() / span).max()) for part in parts]
    limit = min(precision / len(parts), 0.999 * max(shares))
    refined: list[_Part] = []
    for part, share in zip(parts, shares, strict=True):
        if share <= limit or path.passes >= budget:
            refined.append(part)
            continue
        middle = (part.start + part.end) / 2
        at_middle = path.value(middle)
        half = max(nodes // 2, 8)
        refined.append(path.part(part.start, middle, half, part.at_start, at_middle))
        refined.append(path.part(middle, part.end, half, at_middle, part.at_end))
    return refined
