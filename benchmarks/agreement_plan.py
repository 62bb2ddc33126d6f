"""What `agreement.py` does on every image, and how much that is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from agreement_subjects import Subject
from protopfaith.shapley import ESTIMATORS, estimate
from protopfaith.shapley.estimators.moment_propagation.dasp import coalition_sizes
from rivals import Rival

CURVES = ("adaptive_owen", "owen")  # at every budget
SLOWER = ("kernel", "permutation")  # at 2,048 and at the largest budget
MANY_PLAYERS = 100
FEW, MANY = (512, 1024, 2048, 4096), (512, 1024, 2048, 4096, 8192, 16384)
REFERENCE = {False: 32_768, True: 131_072}  # evaluations, for few players and for many
ABLATION: dict[str, dict[str, Any]] = {
    "adaptive_owen without shrinkage": {"shrinkage": False},
    "adaptive_owen without surrogate": {"surrogate": False},
    "adaptive_owen without allocation": {"allocation": False},
    "adaptive_owen, allocation only": {"surrogate": False, "shrinkage": False},
    "adaptive_owen, surrogate only": {"allocation": False, "shrinkage": False},
    "adaptive_owen, shrinkage only": {"allocation": False, "surrogate": False},
}
# All are unbiased and use other random numbers than what is judged. Only the first shares no code with it.
REFERENCES: dict[str, tuple[str, dict[str, Any], str]] = {
    "owen": ("owen", {}, "plain Owen sampling"),
    "allocated": (
        "adaptive_owen",
        {"surrogate": False, "shrinkage": False},
        "Owen sampling with sizes drawn by the measured variance (unbiased; as the default estimator does)",
    ),
    "unshrunk": (
        "adaptive_owen",
        {"shrinkage": False},
        "the DEFAULT ESTIMATOR WITHOUT SHRINKAGE (unbiased and with other random numbers, but no independent "
        "method)",
    ),
}


@dataclass(frozen=True)
class Step:
    """One estimator at one budget; `run(subject, progress)`."""

    name: str
    budget: int
    run: Callable[[Subject, Callable[[int, int], None] | None], Any]
    evaluations: int  # forward passes an image
    images: int  # that it is run on
    full: bool = False  # float32, whatever the others run in
    passes: str = field(default="")  # what else it costs


def plan(options: argparse.Namespace, players: int, outputs: int, others: list[Rival]) -> list[Step]:
    return [*_ours(options, players), *_rivals(options, outputs, others)]


def fill_in(options: argparse.Namespace, players: int) -> None:
    """Budgets and reference that were not asked for, by the number of players."""
    many = players >= MANY_PLAYERS
    options.budgets = options.budgets or list(MANY if many else FEW)
    options.reference = options.reference or REFERENCE[many]


def is_exact(options: argparse.Namespace, players: int) -> bool:
    """Whether the reference's evaluations suffice for all coalitions."""
    return 2**players <= options.reference


def _ours(options: argparse.Namespace, players: int) -> Iterator[Step]:
    wanted = options.estimators.split(",") if options.estimators else None
    passes = [name for name in sorted(ESTIMATORS) if not ESTIMATORS.traits(name).evaluates]
    others = sorted(set(ESTIMATORS) - {*CURVES, *SLOWER, *passes, "exact"})
    known = (*CURVES, *SLOWER, *passes, *others)
    for name in known if wanted is None else wanted:
        if name in passes:
            yield _moments(options, name, players)
            continue
        budgets = options.budgets
        if name in SLOWER:
            budgets = sorted({b for b in budgets if b == 2048} | {budgets[-1]})
        for budget in budgets:
            yield _sampled(options, name, name, budget, {})
    if options.ablation:
        for label, parts in ABLATION.items():
            for budget in options.budgets:
                yield _sampled(options, label, "adaptive_owen", budget, parts)


def _sampled(options: argparse.Namespace, label: str, method: str, budget: int, parts: dict) -> Step:
    def run(subject: Subject, progress: Any) -> Any:
        return estimate(subject.game, method, budget=budget, seed=options.seed, **parts)

    return Step(label, budget, run, budget, options.images)


def _moments(options: argparse.Namespace, name: str, players: int) -> Step:
    if name == "dasp":
        more = {"sizes": options.sizes} | ({"fuse": True} if options.fuse else {})
        count = 2 * players * len(coalition_sizes(players, options.sizes))
        cost, images = f"{count:,} moment passes", min(options.dasp_images, options.images)
    else:
        more = {"nodes": options.nodes}
        cost, images = f"{options.nodes} moment passes and backward passes for each output", options.images

    def run(subject: Subject, progress: Any) -> Any:
        return estimate(subject.full, name, progress=progress, **more)

    return Step(name, 0, run, 0, images, True, cost)


def _rivals(options: argparse.Namespace, outputs: int, others: list[Rival]) -> Iterator[Step]:
    few = min(options.rival_images, options.images)
    for rival in others:
        budgets = [b for b in options.budgets if b <= 2048][-1:] or options.budgets[:1]
        for budget in [rival.fixed] if rival.fixed else budgets:

            def run(subject: Subject, progress: Any, rival: Rival = rival, budget: int = budget) -> Any:
                return rival.run(subject.full if rival.fixed else subject.game, budget, options.seed)

            cost = "and as many backward passes" if rival.fixed else "and the library's own time"
            images = options.images if rival.fixed else few
            yield Step(rival.name, budget, run, outputs * budget, images, bool(rival.fixed), cost)


def work_table(steps: list[Step], options: argparse.Namespace, rate: float, players: int) -> Table:
    """How much all of it is, before it begins."""
    table = Table("step", "evaluations an image", "images", "also", "about s")
    reference = 2**players if is_exact(options, players) else options.reference
    rows = {"reference": [reference, options.images, ""]}
    for step in steps:
        row = rows.setdefault(step.name, [0, step.images, step.passes])
        row[0] += step.evaluations
    total = 0.0
    for name, (evaluations, images, cost) in rows.items():
        seconds = evaluations * images / rate
        total += seconds
        more = "+" if cost else ""
        shown = f"{seconds:.0f}{more}" if evaluations else "?"
        if not images:
            continue
        table.add_row(name, f"{evaluations:,}", str(images), cost, shown)
    count = sum(row[0] * row[1] for row in rows.values())
    table.add_section()
    table.add_row(f"all {options.images} images", f"{count:,} in all", "", "", f"{total:.0f}+")
    return table
