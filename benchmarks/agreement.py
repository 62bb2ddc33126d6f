"""How near every estimator comes to the true Shapley values, and what that costs.

    python benchmarks/agreement.py --demo            # a small network, on a CPU
    python benchmarks/agreement.py --checkpoint run/model.safetensors --data cub --root CUB_200_2011 \
        --device cuda --autocast bfloat16 --csv agreement.csv --plot agreement.png
    python benchmarks/agreement.py --checkpoint run/model.safetensors --array images.npy    # uint8, NCHW
    python benchmarks/agreement.py --factory module:make    # make() -> (function of images, images)

The reference is plain Owen sampling in two independent halves; their agreement tells how reliable it is,
and no estimator can be expected to correlate with it better than the square root of that. Coverage counts
how often the 95% interval (widened by the reference's own standard error) holds the reference. Speed is
evaluations per second as a fraction of plain forward passes, measured in the same run. Libraries that take
one output at a time spend the stated evaluations on each.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.agreement import agreement, pearson
from protopfaith.shapley import ESTIMATORS, Attribution, Game, Players, estimate
from rivals import rivals

SAMPLING = ("adaptive_owen", "owen", "kernel", "permutation")
ABLATION = {
    "adaptive_owen without shrinkage": {"shrinkage": False},
    "adaptive_owen without surrogate": {"surrogate": False},
    "adaptive_owen without allocation": {"allocation": False},
    "adaptive_owen, allocation only": {"surrogate": False, "shrinkage": False},
    "adaptive_owen, surrogate only": {"allocation": False, "shrinkage": False},
    "adaptive_owen, shrinkage only": {"allocation": False, "surrogate": False},
}
console = Console(width=None if sys.stdout.isatty() else 140)


@dataclass(frozen=True)
class Reference:
    """Values ``(outputs, n)``, their standard errors, and the reliability of every output."""

    values: Tensor
    standard_errors: Tensor
    reliability: list[float]


@dataclass(frozen=True)
class Measured:
    """Values, half widths of their 95% intervals (NaN where there are none), and what they cost."""

    values: Tensor
    half_widths: Tensor
    evaluations: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One output of one image, by one estimator at one budget."""

    image: int
    output: int
    estimator: str
    evaluations: int
    correlation: float
    rank_correlation: float
    relative_error: float
    coverage: float
    seconds: float
    speed: float


def main() -> None:
    options = _options()
    device = torch.device(options.device)
    games = list(_games(options, device))
    rate = _forward_rate(games[0])
    outputs, players = games[0].n_outputs, games[0].players.description
    console.print(
        f"{len(games)} images, {outputs} outputs each, {players}; "
        f"plain forward passes: {rate:,.0f} images/s on {_device_name(device)}"
    )
    rows: list[Row] = []
    reliability: list[float] = []
    others = [] if options.no_rivals else list(rivals(console.print))
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("images", total=len(games))
        for number, game in enumerate(games):
            truth = _reference(game, options.reference)
            reliability += truth.reliability
            for name, budget, run in _runs(game, options, others):
                bar.update(task, description=f"image {number}: {name}")
                result = _measure(game, run, device)
                if isinstance(result, str):
                    console.print(f"{name} is left out: {result}")
                else:
                    rows += _compare(result, truth, image=number, name=name, budget=budget, rate=rate)
            bar.advance(task)
    mean = sum(reliability) / len(reliability)
    console.print(
        f"reference: 2 x {options.reference // 2:,} evaluations of plain Owen sampling; "
        f"reliability {mean:.4f} (lowest {min(reliability):.3f}), so correlations end at {mean**0.5:.4f}"
    )
    console.print(_table(rows))
    if options.csv:
        _write(rows, options.csv)
    if options.plot:
        _plot(rows, mean**0.5, options.plot)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--checkpoint", type=Path, help="a network saved by protopfaith.network.save")
    add("--factory", help="module:function that returns (function of images, images)")
    add("--demo", action="store_true", help="train a small network on the embedded birds and use it")
    add("--data", default="birds", help="data set whose test images are explained")
    add("--root", type=Path, help="where the data set lies")
    add("--array", type=Path, help="images as a .npy file instead, uint8")
    add("--images", type=int, default=8)
    add("--prototypes", type=int, default=5, help="outputs per image")
    which = "which: those that the image changes most, the nearest, or those of the predicted class"
    add("--choose", default="total", choices=("total", "nearest", "class"), help=which)
    add("--window", type=int, default=16, help="side of the players' windows in pixels")
    add("--baseline", default="zero")
    add("--budgets", default="512,1024,2048,4096,8192,16384")
    add("--reference", type=int, default=262_144, help="evaluations of the reference")
    add("--estimators", help="names, separated by commas; all by default")
    add("--ablation", action="store_true", help="also the default estimator without each of its parts")
    add("--no-rivals", action="store_true", help="leave Captum and shapiq out")
    add("--device", default="cpu")
    add("--autocast", choices=("bfloat16", "float16"))
    add("--seed", type=int, default=0)
    add("--csv", type=Path)
    add("--plot", type=Path)
    options = parser.parse_args()
    if options.demo:
        options.window, options.images, options.prototypes = 4, min(options.images, 2), 3
        options.reference = min(options.reference, 16_384)
        options.budgets = ",".join(b for b in options.budgets.split(",") if int(b) <= 2048)
    options.budgets = [int(b) for b in options.budgets.split(",")]
    return options


def _games(options: argparse.Namespace, device: torch.device) -> Iterable[Game]:
    function, images = _subject(options)
    if isinstance(function, torch.nn.Module):
        function = function.to(device).eval()
    dtype = getattr(torch, options.autocast) if options.autocast else None
    for image in images[: options.images].to(device):
        players = Players.windows(image.shape[1:], options.window)
        chosen = _chosen(function, image, options, dtype)

        def some(batch: Tensor, chosen: Tensor = chosen) -> Tensor:
            return _outputs(function, batch)[:, chosen]

        yield Game(some, image, players, options.baseline, autocast=dtype)


def _outputs(function: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """A prototype network's distances, or whatever else the function gives."""
    distances = getattr(function, "distances", None)
    return function(images) if distances is None else distances(images)


@torch.no_grad()
def _chosen(
    function: Callable[[Tensor], Tensor],
    image: Tensor,
    options: argparse.Namespace,
    dtype: torch.dtype | None,
) -> Tensor:
    one_player = Players.windows(image.shape[1:], max(image.shape[1:]))
    ends = Game(lambda x: _outputs(function, x), image, one_player, options.baseline, autocast=dtype)
    count = min(options.prototypes, ends.n_outputs)
    if options.choose == "class" and hasattr(function, "prototype_classes"):
        predicted = function(image[None]).argmax()
        return (function.prototype_classes.to(image.device) == predicted).nonzero()[:count, 0]
    if options.choose == "nearest":
        return ends.grand.argsort()[:count]
    return ends.total.abs().argsort(descending=True)[:count]


def _subject(options: argparse.Namespace) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    if options.demo:
        from small import trained_network

        return trained_network(console.print)
    if options.factory:
        module, _, name = options.factory.partition(":")
        return getattr(importlib.import_module(module), name)()
    if options.checkpoint is None:
        raise SystemExit("Give --checkpoint, --factory or --demo.")
    from protopfaith.data import Preprocessing
    from protopfaith.network import load

    model, metadata = load(options.checkpoint)
    preprocessing = metadata.get("preprocessing")
    if options.array:
        pixels = torch.from_numpy(np.load(options.array)[: options.images])
    else:
        from protopfaith.data import load_data

        size = preprocessing and tuple(preprocessing["size"])
        data = load_data(options.data, root=options.root, size=size)
        spread = torch.linspace(0, len(data.test) - 1, options.images).long()
        pixels = torch.stack([data.test.image(int(i)) for i in spread])
        preprocessing = preprocessing or data.preprocessing.to_dict()
    if preprocessing is None:
        raise SystemExit(
            "The checkpoint does not say how its images were normalized; give --data instead of --array."
        )
    return model, Preprocessing.from_dict(preprocessing).normalize(pixels)


def _reference(game: Game, evaluations: int) -> Reference:
    halves = [estimate(game, "owen", budget=evaluations // 2, seed=seed) for seed in (10_001, 10_002)]
    values = torch.stack([half.values for half in halves]).mean(0)
    errors = torch.stack([half.standard_errors for half in halves]).square().sum(0).sqrt() / 2
    r = pearson(halves[0].values, halves[1].values)
    return Reference(values, errors, (2 * r / (1 + r)).tolist())


def _runs(game: Game, options: argparse.Namespace, others: list) -> Iterable[tuple[str, int, Callable]]:
    wanted = options.estimators.split(",") if options.estimators else None
    names = [
        n for n in (*SAMPLING, *sorted(set(ESTIMATORS) - set(SAMPLING))) if wanted is None or n in wanted
    ]
    for name in names:
        if name == "exact" and game.n_players > 20:
            continue
        for budget in options.budgets if name in SAMPLING else [0]:
            yield (
                name,
                budget,
                lambda n=name, b=budget: estimate(game, n, budget=b or None, seed=options.seed),
            )
    if options.ablation:
        for name, parts in ABLATION.items():
            for budget in options.budgets:
                yield (
                    name,
                    budget,
                    lambda p=parts, b=budget: estimate(
                        game, "adaptive_owen", budget=b, seed=options.seed, **p
                    ),
                )
    for rival in others:
        for budget in [rival.fixed] if rival.fixed else [b for b in options.budgets if b <= 2048][-2:]:
            yield rival.name, budget, lambda r=rival, b=budget: r.run(game, b, options.seed)


def _measure(game: Game, run: Callable, device: torch.device) -> Measured | str:
    """The result, or why there is none."""
    before, start = game.evaluations, perf_counter()
    try:
        result = run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except (ProtoPFaithError, ValueError, NotImplementedError, MemoryError) as error:
        return str(error)
    seconds = perf_counter() - start
    if isinstance(result, Attribution):
        low, high = result.interval()
        return Measured(result.values, (high - low) / 2, result.evaluations, seconds)
    values = result.detach().double().cpu()
    return Measured(values, torch.full_like(values, torch.nan), game.evaluations - before, seconds)


def _compare(
    result: Measured, truth: Reference, *, image: int, name: str, budget: int, rate: float
) -> list[Row]:
    near = agreement(result.values, truth.values)
    # The interval of the difference: both sides have errors.
    widths = (result.half_widths.square() + (1.96 * truth.standard_errors).square()).sqrt()
    covered = ((result.values - truth.values).abs() <= widths).double().mean(1)
    unknown = result.half_widths.isnan().any(1) | (result.half_widths == 0).all(1)
    columns = (near.pearson, near.spearman, near.relative_error, torch.where(unknown, torch.nan, covered))
    evaluations = budget or result.evaluations
    speed = evaluations / result.seconds / rate
    return [
        Row(image, output, name, evaluations, *(float(x[output]) for x in columns), result.seconds, speed)
        for output in range(len(result.values))
    ]


@torch.no_grad()
def _forward_rate(game: Game, count: int = 2048) -> float:
    """Plain forward passes per second, in the batches that the game uses."""
    size = min(game.batch_size, count)
    batch = game.image.expand(size, *game.image.shape).contiguous()
    rounds = max(1, min(count // size, 64 if game.device.type == "cuda" else 8))
    game._evaluate(batch)
    _synchronize(game.device)
    start = perf_counter()
    for _ in range(rounds):
        game._evaluate(batch)
    _synchronize(game.device)
    return rounds * size / (perf_counter() - start)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _device_name(device: torch.device) -> str:
    return (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else f"{torch.get_num_threads()} CPU threads"
    )


def _table(rows: list[Row]) -> Table:
    columns = ("estimator", "evaluations", "correlation", "lowest", "rank", "relative error", "95% covers")
    table = Table(*columns, "s/image", "of plain speed")
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.estimator, row.evaluations].append(row)
    last = None
    for (name, evaluations), group in groups.items():
        if last not in (None, name):
            table.add_section()
        last = name
        lowest = min(row.correlation for row in group)
        fields = ("rank_correlation", "relative_error", "coverage")
        means = [f"{np.mean([getattr(row, field) for row in group]):.3f}" for field in fields]
        costs = [f"{np.mean([getattr(row, field) for row in group]):.2f}" for field in ("seconds", "speed")]
        correlation = np.mean([row.correlation for row in group])
        table.add_row(name, f"{evaluations:,}", f"{correlation:.3f}", f"{lowest:.3f}", *means, *costs)
    return table


def _write(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(vars(rows[0])))
        writer.writeheader()
        writer.writerows(vars(row) for row in rows)


def _plot(rows: list[Row], ceiling: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        curves[row.estimator][row.evaluations].append(row.correlation)
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name, curve in curves.items():
        counts = sorted(curve)
        means = [np.mean(curve[c]) for c in counts]
        if len(counts) > 1:
            axes.plot(counts, means, marker="o", label=name)
        else:
            axes.axhline(means[0], linestyle=":", linewidth=1, color="gray")
            axes.annotate(name, (0.01, means[0]), xycoords=("axes fraction", "data"), fontsize=7)
    axes.axhline(ceiling, linestyle="--", color="black", linewidth=1, label="limit of the reference")
    axes.set(
        xscale="log", xlabel="evaluations", ylabel="mean correlation with the true values", ylim=(0, 1.01)
    )
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
