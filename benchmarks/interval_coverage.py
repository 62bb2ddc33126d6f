"""Do error bars hold on trained networks, all over a map and for its largest regions?

    python benchmarks/interval_coverage.py RUN --images 20 --device cuda --autocast bfloat16
    python benchmarks/interval_coverage.py RUN --images 20 --device cuda --autocast bfloat16 --against OTHER
    python benchmarks/interval_coverage.py --checkpoint model.safetensors --data cub --root DATA
    python benchmarks/interval_coverage.py --demo     # a small network, on a CPU

For the nearest prototypes of the predicted class on each image, at each budget: the correlation with the true
values; the share of 95% intervals that hold the truth, for all regions and for the ten largest of a map; and
the share of wrong signs among the regions that are shown as decided. The truth is plain Owen sampling in two
independent halves. The ten largest are chosen by one half and judged with the other, in both ways, so that no
region is chosen for the error that it is judged with; the truth's own error counts in every interval.
Signs are judged where the truth itself is three standard errors from zero. "Corrected" correlations are
divided by the root of the truth's reliability. Each image has seeds of its own (`--seeds` of them): images
that share a seed share most coalitions, and so the luck of these.

With --against, the estimators of another checkout (a folder with src/protopfaith) are measured on the same
games and the same truth, beside those of the installed version.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from time import perf_counter
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

import protopfaith.shapley
from agreement_subjects import open_subjects
from opening import add_network_options, device_name, make_console
from protopfaith.correlation import pearson
from protopfaith.shapley import DEFAULT_METHOD, Game

LARGEST = 10
console = make_console()
Found = dict[tuple[str, int], list[dict[str, float]]]  # of each version and budget


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    device = torch.device(options.device)
    versions: dict[str, Any] = {"this": protopfaith.shapley}
    if options.against:
        versions["other"] = imported_from(options.against)
    found: Found = defaultdict(list)
    begun = perf_counter()
    for number, subject in enumerate(open_subjects(options, device)):
        truth = _truth(subject.game, options.reference, options.truth)
        for budget in options.budgets:
            for name, version in versions.items():
                for seed in range(number * options.seeds, (number + 1) * options.seeds):
                    rows = _measured(version, subject.game, truth, options, budget=budget, seed=seed)
                    found[name, budget] += [{"image": number, **row} for row in rows]
        took = perf_counter() - begun
        console.print(
            f"image {number}: {subject.game.n_outputs} outputs, {subject.game.players.description}, "
            f"reliability {mean(truth.reliability):.3f}; {took:.0f} s so far",
            soft_wrap=True,
        )
        if options.limit and took * (number + 2) / (number + 1) > options.limit:
            break
    console.print(table(found, options, device))
    if options.against:
        for budget in options.budgets:
            console.print(f"{budget:,} evaluations: {difference(found, budget)}")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_network_options(parser)
    add = parser.add_argument
    add("--demo", action="store_true", help="train a small network on the embedded birds and use it")
    add("--images", type=int, default=20)
    add("--prototypes", type=int, default=5, help="of the predicted class, the nearest first")
    add("--margin", action="store_true", help="instead: what the map of a report adds up to")
    add("--players", type=int, default=16, help="side of the windows in pixels")
    add("--baseline", default="zero")
    add("--method", default=DEFAULT_METHOD)
    add("--budgets", default="512,2048,4096,12288")
    add("--reference", type=int, default=131_072, help="evaluations of the truth, both halves together")
    add("--truth", default="owen", choices=("owen", "unshrunk"), help="unshrunk: the default, less noisy")
    add("--seeds", type=int, default=1, help="of each image")
    add("--device", default="cpu")
    add("--autocast", choices=("bfloat16", "float16"))
    add("--against", type=Path, help="another checkout to measure as well")
    add("--limit", type=float, help="seconds: begin no image that would not be done by then")
    options = parser.parse_args(arguments)
    options.budgets = [int(budget) for budget in options.budgets.split(",")]
    options.factory = options.array = None
    options.choose = "margin" if options.margin else "class"
    if options.demo:
        options.players, options.images = 4, min(options.images, 2)
        options.reference = min(options.reference, 16_384)
        options.budgets = [budget for budget in options.budgets if budget <= 2048]
    return options


def imported_from(checkout: Path) -> Any:
    """Another version's `shapley` package, beside the one that is installed: under a name of its own."""
    folder, name = Path(tempfile.mkdtemp()), "protopfaith_other"
    shutil.copytree(checkout / "src" / "protopfaith", folder / name)
    for file in (folder / name).rglob("*.py"):
        file.write_text(file.read_text().replace("protopfaith", name))
    sys.path.insert(0, str(folder))
    return importlib.import_module(f"{name}.shapley")


class Truth:
    """Two independent halves, values `(2, outputs, n)` and their standard errors."""

    def __init__(self, values: Tensor, errors: Tensor):
        self.values, self.errors = values, errors
        r = pearson(values[0], values[1]).clamp_min(0)
        self.reliability: list[float] = (2 * r / (1 + r)).tolist()
        self.mean = values.mean(0)
        self.error = errors.square().sum(0).sqrt() / 2


def _truth(game: Game, evaluations: int, kind: str) -> Truth:
    method, parts = ("owen", {}) if kind == "owen" else (DEFAULT_METHOD, {"shrinkage": False})
    halves = [
        protopfaith.shapley.estimate(game, method, budget=evaluations // 2, seed=seed, **parts)
        for seed in (20_001, 20_002)
    ]
    return Truth(torch.stack([h.values for h in halves]), torch.stack([h.standard_errors for h in halves]))


def _measured(
    version: Any, game: Game, truth: Truth, options: argparse.Namespace, **plan: int
) -> list[dict[str, float]]:
    """One line per output."""
    players = version.Players(game.players.labels, game.players.kind)
    own = version.Game(
        game.function,
        game.image,
        players,
        options.baseline,
        autocast=game.autocast,
        batch_size=game.batch_size,
        check=False,
    )
    start = perf_counter()
    result = version.estimate(own, options.method, **plan)
    seconds = perf_counter() - start
    low, high = result.interval(0.95)
    half = (high - low) / 2
    inside = _inside(result.values, half, truth.mean, truth.error)
    largest = torch.stack([_largest(result.values, half, truth, one) for one in (0, 1)]).mean(0)
    near = pearson(result.values, truth.mean)
    decided, wrong = _signs(result, truth)
    return [
        {
            "correlation": float(near[k]),
            "corrected": float(near[k]) / max(truth.reliability[k], 1e-6) ** 0.5,
            "coverage": float(inside[k].mean()),
            "largest": float(largest[k]),
            "width": float(half[k].square().mean().sqrt() / truth.mean[k].square().mean().sqrt()),
            "decided": float(decided[k]),
            "wrong": float(wrong[k]),
            "seconds": seconds / len(near),
        }
        for k in range(len(near))
    ]


def _inside(values: Tensor, half: Tensor, truth: Tensor, error: Tensor) -> Tensor:
    return ((values - truth).abs() <= (half.square() + (1.96 * error).square()).sqrt()).double()


def _largest(values: Tensor, half: Tensor, truth: Truth, one: int) -> Tensor:
    """Coverage of the regions that are largest in one half, judged with the other half."""
    chosen = truth.values[one].abs().topk(LARGEST, dim=1).indices
    inside = _inside(values, half, truth.values[1 - one], truth.errors[1 - one])
    return inside.gather(1, chosen).mean(1)


def _signs(result: Any, truth: Truth) -> tuple[Tensor, Tensor]:
    """How many regions are decided whose true sign is known, and how many of these have the wrong one."""
    if hasattr(result, "decided"):
        decided = result.decided()
    else:  # versions that call a region decided if it is two standard errors from zero
        decided = result.values.abs() > 2 * result.standard_errors
    known = decided & (truth.mean.abs() > 3 * truth.error)
    return known.sum(1), (known & (result.values.sign() != truth.mean.sign())).sum(1)


def difference(found: Found, budget: int) -> str:
    """How much larger this version's correlations are than the other's, image by image."""
    images = {row["image"] for row in found["this", budget]}

    def of_image(name: str, image: float) -> float:
        return mean(row["correlation"] for row in found[name, budget] if row["image"] == image)

    larger = [of_image("this", image) - of_image("other", image) for image in images]
    error = stdev(larger) / len(larger) ** 0.5 if len(larger) > 1 else float("nan")
    return f"r is larger by {mean(larger):+.4f} ± {error:.4f} (standard error over {len(larger)} images)"


def table(found: Found, options: argparse.Namespace, device: torch.device) -> Table:
    columns = (
        "version",
        "evaluations",
        "r",
        "r corrected",
        "covered",
        f"{LARGEST} largest",
        "half width / value",
    )
    shown = Table(
        *columns, "decided", "wrong sign", "s / map", title=f"{options.method} on {device_name(device)}"
    )
    for (name, budget), rows in found.items():
        average = {key: mean(row[key] for row in rows) for key in rows[0]}
        decided, wrong = (sum(row[key] for row in rows) for key in ("decided", "wrong"))
        shown.add_row(
            name,
            f"{budget:,}",
            *(f"{average[key]:.3f}" for key in ("correlation", "corrected", "coverage", "largest", "width")),
            f"{decided / len(rows):.1f}",
            f"{wrong / max(decided, 1):.3f}",
            f"{average['seconds']:.3f}",
        )
    return shown


if __name__ == "__main__":
    main()
