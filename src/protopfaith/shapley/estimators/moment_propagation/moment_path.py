"""Shapley values of all players from one backward pass per density, by moment propagation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.arguments import shown
from protopfaith.dtypes import full_float32
from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import fused
from protopfaith.shapley.attribution import Attribution
from protopfaith.shapley.estimation import DEFAULT_BUDGET, ESTIMATORS, Progress, finish
from protopfaith.shapley.estimators.moment_propagation.draws import Independent, sketch
from protopfaith.shapley.estimators.moment_propagation.panels import find_panels
from protopfaith.shapley.estimators.moment_propagation.passes import (
    check_finite,
    fitting_passes,
    moment_pass,
    player_image,
)
from protopfaith.shapley.game import Game
from protopfaith.shapley.memory import Batches
from protopfaith.shapley.registration import checked_by

NODES = 32
MOST_NODES = 10_000
AT_ONCE = 5  # parts that are halved together at least: less fills no batch
FEW = 3  # nodes of a panel: kinks, not high powers, are what the path is made of
BEND = 3.0  # of the curve from its parabolas, in units of the asked precision, before derivatives are taken


def _check_nodes(_game: Game, *, budget: int = DEFAULT_BUDGET, nodes: int = NODES, **_: Any) -> None:
    if not 1 <= nodes <= MOST_NODES:
        raise ProtoPFaithError(
            f"The path was asked with {shown(nodes)} nodes; give at least one and at most {MOST_NODES:,}."
        )
    if budget < nodes + 2:  # both ends of the path
        raise ProtoPFaithError(
            f"A path with {nodes} nodes takes {nodes + 2:,} evaluations at least, and the budget is "
            f"{budget:,}; give a larger one, or fewer nodes."
        )


@ESTIMATORS.register(
    "moment_path",
    description="approximated by propagating means and variances through the network",
    evaluates=False,
    per_output=True,
    full_precision=True,
)
@checked_by(_check_nodes)
def moment_path(
    game: Game,
    *,
    budget: int = DEFAULT_BUDGET,
    precision: float | None = None,
    seed: int = 0,
    resume: Attribution | None = None,
    progress: Progress | None = None,
    outputs: Sequence[int] | None = None,
    nodes: int = NODES,
    factors: int = 0,
    batch_size: int | None = None,
    fuse: bool = False,
) -> Attribution:
    r"""$\psi_i = \int_0^1 \partial F / \partial q_i (q, ..., q) \, dq$, F(q) the expectation of f
    when every player is present with its probability q_i, independently (Owen's multilinear extension).

    F comes from moment propagation, which is differentiable: a backward pass gives all players at once, so
    the cost is nodes times outputs, not players. The integral is taken over $\theta$, $q =
    \sin^2 \theta$, since the integrand grows like a square root's derivative at both ends, by
    Gauss-Legendre nodes. Its sum over players must be F(1) - F(0), and that holds for every part of the
    path. If one part with `nodes` nodes leaves a gap of more than `precision` times the range that F
    runs through, the path is divided where F bends, by its values alone (`panels.py`), and each panel
    gets a few nodes; panels whose derivatives still do not add up are halved until the gap is small
    enough, or `budget` passes are spent.

    Without `precision` there is one part with `nodes` nodes. The values are not redistributed: the
    completeness gap is what the nodes leave. `evaluations` counts all moment passes, the options record
    the nodes of the final rule. All passes run in full float32, whatever the game's autocast and the
    TF32 setting say: a rounded F has no derivative that adds up to it. So do F(0) and F(1), the total.
    """
    _check_nodes(game, budget=budget, nodes=nodes)
    path = _Path(game, factors, batch_size, seed, progress)
    with fused(fuse), full_float32():
        ends = path.expectations([0.0, math.pi / 2])
        parts = path.parts([_Part(0.0, math.pi / 2, nodes, *ends)])
        if precision is not None:
            parts = _refined_enough(path, parts, precision, budget, outputs)
    values = torch.stack([part.values for part in parts]).sum(0)
    check_finite(values)
    result = finish(
        game,
        "moment_path",
        values,
        torch.full_like(values, torch.nan),
        evaluations=path.passes,
        seed=seed,
        options={"nodes": sum(part.nodes for part in parts), "factors": path.factors},
    )
    error, total = _error(parts, outputs), (ends[1] - ends[0]).cpu()
    return replace(
        result,
        total=total,
        completeness_gap=result.values.sum(-1) - total,
        precision=error,
        reached=precision is None or error <= precision,
    )


def _refined_enough(
    path: _Path, parts: list[_Part], precision: float, budget: int, outputs: Sequence[int] | None
) -> list[_Part]:
    """Smaller and smaller parts until their gap is within the precision, or the budget is spent."""
    if _error(parts, outputs) <= precision or path.passes >= budget:
        return parts
    parts = path.parts(_panels(path, precision, budget, outputs))
    while _error(parts, outputs) > precision and path.passes < budget:
        parts = _refined(path, parts, precision, outputs)
    return parts


@dataclass
class _Part:
    """A part of the path: F at its ends, what it adds to the values, and the range of F on it."""

    start: float
    end: float
    nodes: int
    at_start: Tensor  # (outputs,)
    at_end: Tensor
    values: Tensor = field(default_factory=lambda: torch.zeros(0))  # (outputs, n)
    low: Tensor = field(default_factory=lambda: torch.zeros(0))  # (outputs,)
    high: Tensor = field(default_factory=lambda: torch.zeros(0))

    @property
    def gap(self) -> Tensor:
        """By how much the values miss what this part adds to the total, (outputs,)."""
        return self.values.sum(1) - (self.at_end - self.at_start)

    def rule(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes in theta, and weights that hold dq = sin(2 theta) dtheta."""
        points, weights = np.polynomial.legendre.leggauss(self.nodes)
        theta = self.start + (points + 1) / 2 * (self.end - self.start)
        return theta, weights / 2 * (self.end - self.start) * np.sin(2 * theta)


@dataclass(frozen=True)
class _Nodes:
    """The nodes of several parts, one after the other: (m,) each."""

    probability: Tensor
    weight: Tensor
    owner: Tensor  # number of the part that a node belongs to

    @staticmethod
    def of(parts: Sequence[_Part], device: torch.device) -> _Nodes:
        rules = [part.rule() for part in parts]
        probability = torch.from_numpy(np.sin(np.concatenate([theta for theta, _ in rules])) ** 2)
        weight = torch.from_numpy(np.concatenate([weights for _, weights in rules]))
        owner = torch.arange(len(parts)).repeat_interleave(torch.tensor([part.nodes for part in parts]))
        return _Nodes(probability.to(device), weight.to(device), owner.to(device))

    def __len__(self) -> int:
        return len(self.owner)

    def shares(self, numbers: Tensor) -> Tensor:
        """What each of these nodes (b,) counts for each part that has one of them: (parts, b)."""
        owners, place = self.owner[numbers].unique(return_inverse=True)
        shares = self.weight.new_zeros(len(owners), len(numbers))
        shares[place, torch.arange(len(numbers), device=numbers.device)] = self.weight[numbers]
        return shares


class _Path:
    """F and its derivatives along the diagonal."""

    def __init__(
        self, game: Game, factors: int, batch_size: int | None, seed: int, progress: Progress | None = None
    ):
        self.game, self.image, self.passes = game, player_image(game), 0
        self.directions = sketch(game.players.labels, factors, seed).to(game.image) if factors else None
        self.factors = 0 if self.directions is None else len(self.directions)
        self.progress = progress
        # Derivatives hold a whole network's activations: far fewer fit than of the values alone.
        self._values = self._derived = None if batch_size is None else Batches(batch_size)

    @torch.no_grad()
    def expectations(self, theta: Sequence[float] | np.ndarray) -> Tensor:
        """F at several points, (m, outputs)."""
        probability = torch.tensor(np.sin(theta) ** 2, device=self.game.device)
        self.passes += len(theta)

        def values(numbers: Tensor) -> Tensor:
            draw = Independent(probability[numbers], self.directions)
            return moment_pass(self.game, self.image.drawn(draw)).double()

        if self._values is None:
            self._values = Batches(fitting_passes(self.game, values))
        numbers = torch.arange(len(theta), device=self.game.device)
        return torch.cat([value for _, value in self._values(values, numbers)])

    def parts(self, parts: Sequence[_Part]) -> list[_Part]:
        """The integrals of the derivatives over parts of the path, filled in; all nodes go in common
        batches."""
        nodes = _Nodes.of(parts, self.game.device)
        sums, means = self._integrals(nodes, len(parts))
        for number, part in enumerate(parts):
            every = torch.cat([means[nodes.owner == number], torch.stack([part.at_start, part.at_end])])
            part.values, part.low, part.high = sums[number], every.amin(0), every.amax(0)
        return list(parts)

    def _integrals(self, nodes: _Nodes, count: int) -> tuple[Tensor, Tensor]:
        """Derivatives summed over the nodes of each of `count` parts (count, outputs, n), and F at every node
        (nodes, outputs)."""
        outputs = self.game.n_outputs
        kind: dict[str, Any] = {"dtype": torch.float64, "device": self.game.device}
        sums = torch.zeros(count, outputs, self.game.n_players, **kind)
        means = torch.zeros(len(nodes), outputs, **kind)

        def one_batch(numbers: Tensor) -> Tensor:
            means[numbers], values = self._derivatives(nodes.probability[numbers], nodes.shares(numbers))
            return values

        if self._derived is None:
            self._derived = Batches(fitting_passes(self.game, one_batch))
        for numbers, values in self._derived(one_batch, torch.arange(len(nodes), device=self.game.device)):
            sums.index_add_(0, nodes.owner[numbers].unique(), values)
            if self.progress is not None:  # how many nodes will be needed is not known before these are done
                self.progress(self.passes + int(numbers[-1]) + 1, self.passes + len(nodes))
        self.passes += len(nodes)
        return sums, means

    def _derivatives(self, probability: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
        """F at every probability (B, outputs), and sums of its derivatives weighted by shares (r, B): (r,
        outputs, n).

        The batch's passes do not touch one another, so one backward pass gives the gradients of all of
        them.
        """
        with torch.enable_grad():
            draw = Independent(probability, self.directions)
            mean = moment_pass(self.game, self.image.drawn(draw))
            leaves = draw.leaves()
            columns = [
                draw.derivatives(draw.summed(_gradients(output, leaves), shares)).double()
                for output in mean.sum(0)
            ]
        return mean.detach().double(), torch.stack(columns, 1)


def _gradients(output: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """The gradient of one number by the leaves, zero where it does not depend on them."""
    if not output.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    found = torch.autograd.grad(output, leaves, retain_graph=True, allow_unused=True)
    return [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, leaves, strict=True)]


def _gaps(parts: Sequence[_Part], outputs: Sequence[int] | None) -> Tensor:
    """The parts' gaps relative to the range of F, of the outputs that count: (parts, outputs)."""
    low, high = torch.stack([part.low for part in parts]), torch.stack([part.high for part in parts])
    gaps = torch.stack([part.gap for part in parts]) / (high.amax(0) - low.amin(0)).clamp_min(1e-30)
    return gaps if outputs is None else gaps[:, list(outputs)]


def _error(parts: Sequence[_Part], outputs: Sequence[int] | None) -> float:
    """The gap relative to the range of F, for the worst output.

    Of the sum of the parts' gaps and the root of the sum of their squares the larger one: gaps that cancel by
    chance do not count as none.
    """
    gaps = _gaps(parts, outputs)
    return float(torch.maximum(gaps.sum(0).abs(), gaps.square().sum(0).sqrt()).max())


def _panels(path: _Path, precision: float, budget: int, outputs: Sequence[int] | None) -> list[_Part]:
    """Parts that are small where F bends, with a few nodes each; their derivatives are still to be taken."""
    most = max((budget - path.passes) // 2, 1)  # the other half is for the derivatives
    panels = find_panels(
        path.expectations, 0.0, math.pi / 2, tolerance=BEND * precision, most=most, outputs=outputs
    )
    return [_Part(panel.start, panel.end, FEW, panel.values[0], panel.values[-1]) for panel in panels]


def _refined(
    path: _Path, parts: Sequence[_Part], precision: float, outputs: Sequence[int] | None
) -> list[_Part]:
    """Halves the parts with the largest gaps: as many as leave the others well within the precision."""
    shares = _gaps(parts, outputs).abs()
    order = shares.amax(1).argsort(descending=True)
    squares = shares[order].square()
    left = (squares.sum(0) - squares.cumsum(0)).clamp_min(0).sqrt().amax(1)  # without the first 1, 2, ...
    count = int((left > precision / math.sqrt(2)).sum()) + 1
    worst = set(order[: max(count, AT_ONCE)].tolist())
    coarse = [part for number, part in enumerate(parts) if number in worst]
    middles = [(part.start + part.end) / 2 for part in coarse]
    halves = []
    for part, middle, value in zip(coarse, middles, path.expectations(middles), strict=True):
        halves.append(_Part(part.start, middle, FEW, part.at_start, value))
        halves.append(_Part(middle, part.end, FEW, value, part.at_end))
    kept = [part for number, part in enumerate(parts) if number not in worst]
    return kept + path.parts(halves)
