"""DASP (Ancona et al., 2019), the paper's estimator: expectations over coalitions by moment propagation."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import fused
from protopfaith.shapley.attribution import Attribution
from protopfaith.shapley.estimation import ESTIMATORS, MOST_EVALUATIONS, Progress, finish
from protopfaith.shapley.estimators.moment_propagation.draws import FixedSize, sketch
from protopfaith.shapley.estimators.moment_propagation.passes import (
    check_finite,
    fitting_passes,
    moment_pass,
    player_image,
)
from protopfaith.shapley.game import Game
from protopfaith.shapley.memory import Batches
from protopfaith.shapley.registration import checked_by

SIZES = 32
FIRST_LAYERS = ("shared", "pixels")
WORTH_FUSING = 2500  # moment passes, since compiling the rules takes some seconds (once a process)
SAVE_EVERY = 60.0  # seconds


def _check(
    game: Game,
    *,
    budget: int = MOST_EVALUATIONS,
    sizes: int = SIZES,
    first_layer: str = "shared",
    stop_after: int | None = None,
    **_: Any,
) -> None:
    if first_layer not in FIRST_LAYERS:
        raise ProtoPFaithError(
            f"The first layer of dasp is {first_layer!r}; choose one of {', '.join(FIRST_LAYERS)}."
        )
    if sizes < 1:
        raise ProtoPFaithError(f"Dasp was asked for {sizes} coalition sizes; give at least one.")
    passes = 2 * min(sizes, game.n_players) * game.n_players
    if stop_after is None and budget < passes:
        raise ProtoPFaithError(
            f"Dasp takes {passes:,} evaluations for {game.n_players} players, and the budget is {budget:,}; "
            "give no budget, fewer players or fewer sizes."
        )


@ESTIMATORS.register(
    "dasp",
    description="approximated by propagating means and variances through the network",
    evaluates=False,
    planned=False,
    full_precision=True,
)
@checked_by(_check)
def dasp(
    game: Game,
    *,
    budget: int = MOST_EVALUATIONS,
    precision: float | None = None,
    seed: int = 0,
    resume: Attribution | None = None,
    progress: Progress | None = None,
    sizes: int = SIZES,
    first_layer: str = "shared",
    factors: int = 0,
    batch_size: int | None = None,
    fuse: bool | None = None,
    stop_after: int | None = None,
    seconds: float | None = None,
    checkpoint: str | Path | None = None,
) -> Attribution:
    r"""$\psi_i = \frac{1}{D} \sum_d E[f | i \text{ in}, d \text{ others}] - E[f | i \text{ out}, d
    \text{ others}]$.

    Both expectations come from one moment pass each: 2 D n passes, for D `sizes` evenly spaced from no
    other player to all of them. Nothing is drawn and nothing converges: precision and seed do not matter, a
    smaller budget is refused, and standard errors are unknown (NaN); how far the values' sum is off shows in
    the completeness gap.

    Args:
        sizes: coalition sizes; all of them where there are fewer.
        first_layer: "shared": a player is one on/off variable for all its pixels; "pixels": every pixel and
            channel is drawn by itself, as the authors' code in effect does, for comparison.
        factors: common factors that carry correlation through the network; 0 as in the paper.
        batch_size: moment passes at a time; without it as many as the game's memory bound allows.
        fuse: compile the rules, see `protopfaith.moments.fused`; by default where it pays.
        stop_after: players to do in this call. The result can be continued with `resume`; `reached` is False
            and values not done are NaN.
        seconds: stop after the first batch that ends later than this; to be continued likewise.
        checkpoint: a file that gets the result so far every minute and at the end, also where that is an
            interruption (Ctrl-C); go on with `resume=Attribution.load(file)`.
    """
    _check(game, budget=budget, sizes=sizes, first_layer=first_layer, stop_after=stop_after)
    work = _Work(game, coalition_sizes(game.n_players, sizes).to(game.device), resume)
    last = work.pairs if stop_after is None else min(work.pairs, work.done + stop_after * len(work.sizes))
    differences = _Differences(game, work.sizes, first_layer, factors, seed)
    options = {"sizes": sizes, "first_layer": first_layer, "factors": differences.factors}
    if fuse is None:
        passes = 2 * (last - work.done)
        fuse = game.device.type == "cuda" and passes > WORTH_FUSING and find_spec("triton") is not None
    begun = saved = time.monotonic()
    try:
        with fused(fuse), torch.no_grad():
            step = fitting_passes(game, differences) if batch_size is None else max(batch_size // 2, 1)
            left = torch.arange(work.done, last, device=game.device)
            for pairs, values in Batches(step)(differences, left):
                work.add(pairs, values)
                if progress is not None:
                    progress(2 * work.done, 2 * work.pairs)
                if checkpoint is not None and time.monotonic() - saved > SAVE_EVERY:
                    work.result(seed, options).save(checkpoint)
                    saved = time.monotonic()
                if seconds is not None and time.monotonic() - begun > seconds:
                    break
    finally:  # an interruption (Ctrl-C), too, leaves what is done
        if checkpoint is not None:
            work.result(seed, options).save(checkpoint)
    return work.result(seed, options)


def coalition_sizes(n_players: int, count: int) -> Tensor:
    """`count` whole numbers evenly spaced from 0 to n - 1 (all other players), or all where there are
    fewer."""
    if count >= n_players:
        return torch.arange(n_players).double()
    return torch.linspace(0, n_players - 1, count, dtype=torch.float64).round()


class _Differences:
    """E[f | i in] - E[f | i out] for pairs of player and size, given by number, (m, outputs)."""

    def __init__(self, game: Game, sizes: Tensor, first_layer: str, factors: int, seed: int):
        self.game, self.sizes, self.pixels = game, sizes, first_layer == "pixels"
        self.image = player_image(game)
        self.directions = None
        if factors:
            self.directions = sketch(game.players.labels, factors, seed).to(game.image)
        self.factors = 0 if self.directions is None else len(self.directions)

    def __call__(self, pairs: Tensor) -> Tensor:
        player, size = pairs // len(self.sizes), self.sizes[pairs % len(self.sizes)]
        inside = torch.arange(2 * len(pairs), device=pairs.device) < len(pairs)
        draw = FixedSize(
            player.repeat(2), inside, size.repeat(2), self.game.n_players, self.pixels, self.directions
        )
        present, absent = moment_pass(self.game, self.image.drawn(draw)).double().chunk(2)
        check_finite(present)
        check_finite(absent)
        return present - absent


class _Work:
    """Sums over coalition sizes, player after player, and how far they have got."""

    def __init__(self, game: Game, sizes: Tensor, resume: Attribution | None):
        self.game, self.sizes = game, sizes
        self.pairs = game.n_players * len(sizes)
        self.done = 0
        self.sums = torch.zeros(game.n_outputs, game.n_players, dtype=torch.float64, device=game.device)
        if resume is not None and resume.state is not None:
            self.done, self.sums = int(resume.state["done"]), resume.state["sums"]

    def add(self, pairs: Tensor, values: Tensor) -> None:
        self.sums.index_add_(1, pairs // len(self.sizes), values.T)
        self.done += len(pairs)

    def result(self, seed: int, options: dict) -> Attribution:
        values = self.sums / len(self.sizes)
        finished = self.done // len(self.sizes)
        values[:, finished:] = torch.nan
        state = {"done": torch.tensor(self.done), "sums": self.sums.cpu().clone()}
        unknown = torch.full_like(values, torch.nan)
        result = finish(
            self.game,
            "dasp",
            values,
            unknown,
            evaluations=2 * self.done,
            seed=seed,
            options=options,
            state=state,
        )
        return replace(result, reached=self.done == self.pairs)
