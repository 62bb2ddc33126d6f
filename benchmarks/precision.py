"""What a precision with a budget as its limit saves against a fixed budget, on many images.

    python benchmarks/precision.py RUN images                               # on a CPU
    python benchmarks/precision.py RUN images --limit 14 --device cuda --autocast bfloat16

Every image is explained once, in parts of 41% more evaluations each, and after each part its
relative error is noted: that of the worst map which a report shows, as the column precision of
`explain --bulk` has it. From these courses follows what any plan would have spent: a fixed budget, or a
precision (it stops at the first part that has it) with a budget as its limit. The last columns are the
fixed budgets with the same 95th percentile of errors, and with the same mean: what is saved against them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.table import Table

from opening import make_console, spread
from protopfaith.devices import choose_autocast
from protopfaith.explanation import Explainer, Settings
from protopfaith.explanation.bulk.inputs import list_items
from protopfaith.explanation.decision import decide
from protopfaith.explanation.resumable_game import ResumableGame
from protopfaith.explanation.settings import make_players, usual_budget
from protopfaith.training import Run

console = make_console()
FIRST, GROWTH = 514, 2**0.5


@dataclass(frozen=True)
class Outcome:
    """What a plan comes to, over images."""

    evaluations: float
    mean: float
    tail: float  # 95th percentile of errors
    reached: float

    def cells(self) -> list[str]:
        return [f"{self.evaluations:,.0f}", f"{self.mean:.3f}", f"{self.tail:.3f}", f"{self.reached:.0%}"]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    device = torch.device(options.device)
    limits = options.limits or [usual_budget(device)]
    most = options.most or 2 * max(limits)
    start = perf_counter()
    budgets, errors = courses(options, device, limits, most)
    console.print(f"{len(errors)} images, {perf_counter() - start:.0f} s, {torch.get_num_threads()} threads")
    for limit in limits:
        console.print(compare(budgets, errors, limit, options.precisions))


def courses(
    options: argparse.Namespace, device: torch.device, limits: list[int], most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluations after each part (k,), and the errors then (images, k)."""
    explainer = Explainer(Run(options.run, options.root), device=device)
    settings = Settings(players=options.players, autocast=choose_autocast(options.autocast, device))
    settings = settings.on(device, explainer.size)
    every = list_items([Path(path) for path in options.images])
    budgets = [FIRST]
    while budgets[-1] < most:
        budgets.append(min(int(budgets[-1] * GROWTH), most))
    budgets = sorted({*budgets, *(limit for limit in limits if limit < most)})
    rows: list[list[float]] = []
    console.print("evaluations: " + " ".join(map(str, budgets)), soft_wrap=True)
    for place in spread(options.limit or len(every), len(every)):
        decision = decide(explainer.model, explainer.open(every[place].path), settings=settings)
        players = make_players(settings.players, decision.picture.input)
        resumable = ResumableGame(explainer.fused, decision, settings, players)
        rows.append([resumable.play(budget - resumable.evaluations).precision for budget in budgets])
        told = " ".join(f"{error:.3f}" for error in rows[-1])
        console.print(f"{every[place].name}: {told}", soft_wrap=True)
    return np.array(budgets), np.array(rows)


def compare(budgets: np.ndarray, errors: np.ndarray, limit: int, precisions: Sequence[float]) -> Table:
    """Fixed budgets up to the limit, then precisions with the limit."""
    table = Table(
        "plan",
        "evaluations per image",
        "mean error",
        "95% of errors below",
        "precision reached",
        "fixed budget with that 95%",
        "... with that mean",
        title=f"limit {limit:,}",
    )
    for budget in sorted({limit // 4, limit // 2, limit}):
        table.add_row(f"fixed, {budget:,}", *fixed(budgets, errors, budget).cells()[:3], "", "", "")
    for precision in precisions:
        found = with_precision(budgets, errors, precision, limit)
        same = [
            _saving(found.evaluations, budget_for(budgets, curve, value))
            for curve, value in (
                (np.quantile(errors, 0.95, axis=0), found.tail),
                (errors.mean(0), found.mean),
            )
        ]
        table.add_row(f"precision {precision:g}", *found.cells(), *same)
    return table


def fixed(budgets: np.ndarray, errors: np.ndarray, budget: int) -> Outcome:
    """The last part within the budget, for all images."""
    place = int(np.searchsorted(budgets, budget, side="right")) - 1
    row = errors[:, max(place, 0)]
    return Outcome(float(budgets[max(place, 0)]), float(row.mean()), float(np.quantile(row, 0.95)), 0.0)


def with_precision(budgets: np.ndarray, errors: np.ndarray, precision: float, limit: int) -> Outcome:
    """Each image stops at its first part that has the precision, or at the limit."""
    last = max(int(np.searchsorted(budgets, limit, side="right")) - 1, 0)
    enough = errors[:, : last + 1] <= precision
    stops = np.where(enough.any(1), enough.argmax(1), last)
    row = errors[np.arange(len(errors)), stops]
    return Outcome(
        float(budgets[stops].mean()),
        float(row.mean()),
        float(np.quantile(row, 0.95)),
        float(enough.any(1).mean()),
    )


def budget_for(budgets: np.ndarray, curve: np.ndarray, error: float) -> float:
    """The fixed budget with this error, between the measured ones; NaN where none has it."""
    falling = np.minimum.accumulate(curve)
    if not falling[-1] <= error <= falling[0]:
        return float("nan")
    return float(np.exp(np.interp(-np.log(error), -np.log(falling), np.log(budgets))))


def _saving(spent: float, budget: float) -> str:
    return "not measured" if np.isnan(budget) else f"{budget:,.0f} ({spent / budget - 1:+.0%})"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("run", type=Path)
    add("images", nargs="+")
    add("--limit", type=int, default=0, help="so many of the images, evenly spaced")
    add("--root", type=Path, help="of the run's images, if not where its recipe says")
    add("--players", type=int, help="side of the windows in pixels; by default what explain takes")
    add("--limits", type=int, nargs="*", help="by default the usual budget")
    add("--most", type=int, help="evaluations of every image; by default twice the largest limit")
    add("--precisions", type=float, nargs="*", default=[0.05, 0.1, 0.15, 0.2, 0.3])
    add("--device", default="cpu")
    add("--autocast", default="auto")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
