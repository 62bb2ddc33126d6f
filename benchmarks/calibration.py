"""Do error bars hold? On games with known Shapley values, at several budgets, over many seeds.

    python benchmarks/calibration.py [--at-once 8]                       # all games: about an hour on a CPU
    python benchmarks/calibration.py --games linear,airport --budgets 512 --seeds 5
    python benchmarks/calibration.py --methods adaptive_owen,owen,kernel,permutation --csv calibration.csv
    python benchmarks/calibration.py --games further --budgets 512 --seeds 8    # those of further_games.py
    python benchmarks/calibration.py --games later --seeds 8                    # those of later_games.py
    python benchmarks/calibration.py --games outside --seeds 8                  # those of outside_games.py
    python benchmarks/calibration.py --games stranger --seeds 10                # those of stranger_games.py
    python benchmarks/calibration.py --markdown
    python benchmarks/calibration.py --methods "adaptive_owen,shapiq OddSHAP" --shapiq-python newer/bin/python

For every game: the share of 95% intervals that hold the true value, over all players and over the five
largest true values of each output; the slope of the mean unshrunk estimate on the truth, with its standard
error; the error of the values relative to their size; how many of the players are shown as decided
(`Attribution.decided`), and the share of these whose sign is wrong, a true zero being wrong either way.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from further_games import FURTHER
from known_games import GAMES, KnownGame, Maker
from later_games import LATER
from outside_games import OUTSIDE
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import DEFAULT_METHOD, ESTIMATORS, Attribution, Game, estimate, finish
from rivals import Rival, rivals
from stranger_games import STRANGER

LARGEST = 5
ZERO = 1e-9  # of the largest true value: less is none


@dataclass(frozen=True)
class Row:
    """One game, method and budget, over all seeds."""

    game: str
    method: str
    budget: int
    coverage: float
    largest: float  # coverage of the largest true values
    slope: float  # of the mean unshrunk estimate on the truth, for the output where it is farthest from one
    slope_error: float
    error: float  # root mean square error over root mean square value, averaged over outputs
    correlation: float
    decided: float  # share of players
    wrong: float  # share of these


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--games", help="names with commas between, or further, later, outside, stranger; else the suite")
    add("--methods", default=DEFAULT_METHOD)
    add("--budgets", default="512,2048,8192")
    add("--seeds", type=int, default=20)
    add("--first-seed", type=int, default=0, help="others tell chance from bias")
    add("--game-seed", type=int, default=0, help="another one makes other games of the same kinds")
    add("--shapiq-python", help="a Python with another version of shapiq, see shapiq_worker.py")
    add("--csv", type=Path)
    add("--markdown", action="store_true")
    add("--at-once", type=int, default=1, help="so many games, each in a process of its own")
    options = parser.parse_args(arguments)
    prepare(options)
    rows: list[Row] = []
    games, methods = chosen_games(options.games), options.methods.split(",")
    cases = list(product(games, methods, map(int, options.budgets.split(","))))
    with ProcessPoolExecutor(options.at_once, get_context("spawn"), prepare, (options,)) as pool:
        run = map if options.at_once == 1 else pool.map
        for row in run(partial(judged, options), cases):
            if row is not None:
                rows.append(row)
                print(row, flush=True)
    if options.csv:
        write(rows, options.csv)
    Console(width=150).print(markdown(rows) if options.markdown else table(rows))


def prepare(options: argparse.Namespace) -> None:
    """What every process needs."""
    torch.set_num_threads(1)  # small matrices
    if "shapiq" in options.methods:
        register_rivals(options.shapiq_python)


def chosen_games(names: str | None) -> dict[str, Maker]:
    """Those of the suite, those of a file that came after it ("further", ...), or some by name."""
    groups = {None: GAMES, "further": FURTHER, "later": LATER, "outside": OUTSIDE, "stranger": STRANGER}
    if names in groups:
        return groups[names]
    return {name: (GAMES | FURTHER | LATER | OUTSIDE | STRANGER)[name] for name in names.split(",")}


def register_rivals(python: str | None) -> None:
    """Other libraries' approximators as estimators that do not know their errors."""

    def estimator(rival: Rival) -> Callable[..., Attribution]:
        def run(game: Game, *, budget: int, seed: int, **_: object) -> Attribution:
            values = rival.run(game, budget, seed)
            return finish(game, rival.name, values, torch.full_like(values, torch.nan), evaluations=budget)

        return run

    for rival in rivals(print, python):
        if not rival.fixed:
            ESTIMATORS.register(rival.name)(estimator(rival))


def judged(options: argparse.Namespace, case: tuple[str, str, int]) -> Row | None:
    name, method, budget = case
    known = chosen_games(options.games)[name](options.game_seed)
    return measured(
        name, known, method, budget, range(options.first_seed, options.first_seed + options.seeds)
    )


def measured(name: str, known: KnownGame, method: str, budget: int, seeds: Sequence[int]) -> Row | None:
    """None where the method cannot work with so small a budget."""
    game = known.game()
    found, raw = [], []
    for seed in seeds:
        try:
            result = estimate(game, method, budget=budget, seed=seed)
        except (ProtoPFaithError, ValueError, RuntimeError) as error:
            print(f"{name}, {method}, {budget}: {error}", flush=True)
            return None
        found.append(result)
        raw.append(unshrunk(game, result))
    slope, slope_error = worst_slope(torch.stack(raw), known.truth)
    decided, wrong = signs(found, known.truth)
    inside = torch.stack([covered(result, known.truth) for result in found])  # (seeds, outputs, n)
    largest = known.truth.abs().topk(LARGEST, dim=1).indices.expand(len(seeds), -1, -1)
    error = torch.stack([(r.values - known.truth).norm(dim=1) / known.truth.norm(dim=1) for r in found])
    return Row(
        name,
        method,
        budget,
        coverage=float(inside.mean()),
        largest=float(inside.gather(2, largest).mean()),
        slope=slope,
        slope_error=slope_error,
        error=float(error.square().mean(0).sqrt().mean()),
        correlation=float(torch.stack([correlation(r.values, known.truth) for r in found]).mean()),
        decided=decided,
        wrong=wrong,
    )


def unshrunk(game: Game, result: Attribution) -> Tensor:
    """The values before shrinkage, from the same samples."""
    if result.method != "adaptive_owen" or result.state is None:
        return result.values
    return estimate(game, result.method, resume=result, budget=result.evaluations, shrinkage=False).values


def covered(result: Attribution, truth: Tensor) -> Tensor:
    low, high = result.interval(0.95)
    if bool(low.isnan().all()):
        return torch.full_like(truth, torch.nan)
    slack = ZERO * truth.abs().amax(1, keepdim=True) + 1e-6 * truth.abs()  # float32 values of exact results
    return ((low - slack <= truth) & (truth <= high + slack)).double()


def worst_slope(raw: Tensor, truth: Tensor) -> tuple[float, float]:
    """Of the mean estimate on the truth, with its error from the spread over seeds."""
    centered = truth - truth.mean(1, keepdim=True)
    slopes = (raw * centered).sum(2) / centered.square().sum(1).clamp_min(1e-300)  # (seeds, outputs)
    mean, error = slopes.mean(0), slopes.std(0) / len(raw) ** 0.5
    worst = int((mean - 1).abs().argmax())
    return float(mean[worst]), float(error[worst])


def signs(found: list[Attribution], truth: Tensor) -> tuple[float, float]:
    """The share of players that are decided, and the share of these whose sign is wrong."""
    if not hasattr(found[0], "decided"):
        return float("nan"), float("nan")
    decided = torch.stack([result.decided() for result in found])
    size = truth.abs().amax(1, keepdim=True)
    signs = torch.where(truth.abs() > ZERO * size, truth.sign(), 0)
    wrong = torch.stack([result.values.sign() for result in found]) != signs
    return float(decided.double().mean()), float((decided & wrong).sum() / decided.sum().clamp_min(1))


def correlation(values: Tensor, truth: Tensor) -> Tensor:
    a, b = values - values.mean(1, keepdim=True), truth - truth.mean(1, keepdim=True)
    return ((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1)).clamp_min(1e-300)).mean()


def cells(row: Row) -> list[str]:
    return [
        row.game,
        row.method,
        f"{row.budget:,}",
        f"{row.coverage:.3f}",
        f"{row.largest:.3f}",
        f"{row.slope:.3f} ({row.slope_error:.3f})",
        f"{row.error:.3f}",
        f"{row.correlation:.3f}",
        f"{row.decided:.2f}",
        f"{row.wrong:.3f}",
    ]


HEAD = (
    "game",
    "method",
    "budget",
    "coverage",
    f"{LARGEST} largest",
    "slope (error)",
    "error",
    "r",
    "decided",
    "wrong sign",
)


def means(rows: Sequence[Row]) -> list[list[str]]:
    """One line per method and budget: averages over games, and the worst game in brackets."""
    lines = []
    for method, budget in dict.fromkeys((row.method, row.budget) for row in rows):
        some = [row for row in rows if (row.method, row.budget) == (method, budget)]

        def mean(name: str, some: list[Row] = some) -> float:
            return sum(getattr(row, name) for row in some) / len(some)

        off = max(max(abs(row.slope - 1), 0.0) for row in some)
        lines.append(
            [
                "mean (worst)",
                method,
                f"{budget:,}",
                f"{mean('coverage'):.3f} ({min(row.coverage for row in some):.3f})",
                f"{mean('largest'):.3f} ({min(row.largest for row in some):.3f})",
                f"off by {off:.3f}",
                f"{mean('error'):.3f}",
                f"{mean('correlation'):.3f}",
                f"{mean('decided'):.2f}",
                f"{mean('wrong'):.3f} ({max(row.wrong for row in some):.3f})",
            ]
        )
    return lines


def table(rows: Sequence[Row]) -> Table:
    shown = Table(*HEAD)
    for row in rows:
        shown.add_row(*cells(row))
    shown.add_section()
    for line in means(rows):
        shown.add_row(*line)
    return shown


def markdown(rows: Sequence[Row]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "| --- " * len(HEAD) + "|"]
    lines += ["| " + " | ".join(line) + " |" for line in [*map(cells, rows), *means(rows)]]
    return "\n".join(lines)


def write(rows: Sequence[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


if __name__ == "__main__":
    main()
