"""The paper's explanation as the paper makes it: DASP for every 2 x 2 window, with 32 coalition sizes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.subjects import choose_prototypes, find_subjects
from protopfaith.evaluation.explainers import Options, density, game_of, selected_distances
from protopfaith.evaluation.metrics.removal import aopc, removal_curves, removal_ranks
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Attribution, Game, Players, estimate, make_baseline
from protopfaith.training import Run


@dataclass(frozen=True)
class FinePlan:
    """What is computed, and for how long."""

    window: int = 2
    sizes: int = 32
    steps: int = 100
    coarse: int = 16
    seed: int = 0
    seconds: float = 0.0  # 0: to the end
    memory: int | None = None
    moment_batch: int | None = None


class Clock:
    """Measures how fast an estimator goes, without its first batch."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.first: tuple[float, int] | None = None
        self.last: tuple[float, int] = (self.begin, 0)
        self.total = 0

    def __call__(self, done: int, total: int) -> None:
        now = time.perf_counter()
        self.first = self.first or (now, done)
        self.last, self.total = (now, done), total

    @property
    def rate(self) -> float | None:
        """Moment passes a second; None after a single batch, which also compiled and warmed up."""
        if self.first is None or self.last[1] == self.first[1]:
            return None
        return (self.last[1] - self.first[1]) / (self.last[0] - self.first[0])


def fine_dasp(run: Run, folder: Path, device: str, plan: FinePlan) -> str:
    """Goes on with DASP on the first prototype drawn, and says in Markdown how far it got.

    Unfinished, there are no values, only the players done and the time that the whole would take.
    """
    model = run.model(device).to(memory_format=torch.channels_last)
    prototype = choose_prototypes(model, 1, plan.seed)[0]
    subject = find_subjects(model, run.data(), [prototype], run.preprocessing())[0]
    size = subject.image.shape[-2:]
    options = Options(Players.windows(size, plan.window), seed=plan.seed, memory=plan.memory)
    game = game_of(model, subject.image, [prototype], options)
    clock, spent, result = _continued(game, folder, plan)
    players = game.n_players
    passes, done = 2 * plan.sizes * players, result.evaluations
    title = (
        f"DASP with {plan.window} x {plan.window} windows and {plan.sizes} sizes on prototype {prototype} "
        f"({subject.path}): {players:,} players, {passes:,} moment passes."
    )
    if not result.reached:
        finished = int((~result.values[0].isnan()).sum())
        said = f"After {spent:,.0f} s {finished:,} of {players:,} players were done ({done / passes:.1%})."
        if clock.rate is not None:
            said += (
                f" At the measured {clock.rate:,.0f} passes a second the whole takes "
                f"{passes / clock.rate / 60:,.1f} minutes. Values are not reported before it is finished."
            )
        return f"{title} {said}"
    gap = float(result.completeness_gap.abs() / result.total.abs())
    scores = _scores(model, subject.image, prototype, result, plan)
    return f"{title} It took {spent:,.0f} s; completeness gap {gap:.1%}.\n\n" + _table(
        scores, folder / "prototypes.csv", prototype
    )


def _continued(game: Game, folder: Path, plan: FinePlan) -> tuple[Clock, float, Attribution]:
    """From the checkpoint if there is one; also the seconds spent in all."""
    checkpoint, notes = folder / "fine_dasp.npz", folder / "fine_dasp.json"
    folder.mkdir(parents=True, exist_ok=True)
    before, spent = None, 0.0
    if checkpoint.is_file() and notes.is_file():
        before, spent = Attribution.load(checkpoint), float(json.loads(notes.read_text())["seconds"])
    clock = Clock()
    if before is not None and before.reached:
        return clock, spent, before
    result = estimate(
        game,
        "dasp",
        seed=plan.seed,
        resume=before,
        progress=clock,
        sizes=plan.sizes,
        batch_size=plan.moment_batch,
        seconds=plan.seconds or None,
        checkpoint=checkpoint,
    )
    if clock.first is None:
        raise ProtoPFaithError("DASP was stopped before its first batch; give it more seconds.")
    spent += time.perf_counter() - clock.begin
    notes.write_text(json.dumps({"seconds": spent, "passes": result.evaluations, "rate": clock.rate}))
    return clock, spent, result


def _scores(
    model: ProtoPNet, image: Tensor, prototype: int, result: Attribution, plan: FinePlan
) -> dict[str, float]:
    """AOPC of the fine map, removed by the windows that all explainers remove, and by its own."""
    fine = -density(result.values, result.players)[0].to(image.device)
    coarse = Players.windows(image.shape[-2:], plan.coarse)
    ranks = torch.stack([removal_ranks(fine, regions) for regions in (coarse, result.players)])
    curves = removal_curves(
        selected_distances(model, [prototype]),
        image.expand(2, *image.shape),
        ranks,
        torch.zeros(2, dtype=torch.long),
        make_baseline("zero", image)[0].expand(2, *image.shape),
        steps=plan.steps,
        memory=plan.memory,
    )
    (early, own_early), (late, own_late) = aopc(curves, 0.2).tolist(), aopc(curves).tolist()
    return {"aopc_20": early, "aopc_100": late, "aopc_20_own": own_early, "aopc_100_own": own_late}


def _table(scores: dict[str, float], others: Path, prototype: int) -> str:
    """Beside the other explainers on the same prototype, where they were judged already."""
    rows: dict[str, dict[str, Any]] = {"DASP, fine": scores}
    if others.is_file():
        known = pd.read_csv(others)
        known = known[known["prototype"] == prototype].set_index("explainer")
        rows |= {name: known.loc[name, list(scores)].to_dict() for name in known.index}
    lines = ["| explainer | AOPC 20% | AOPC 100% | own units 20% | own units 100% |", "| --- " * 5 + "|"]
    lines += [
        f"| {name} | " + " | ".join(f"{row[k]:.3f}" for k in scores) + " |" for name, row in rows.items()
    ]
    return "\n".join(lines)
