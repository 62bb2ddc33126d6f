"""How near every estimator comes to the true Shapley values, and what that costs.

    python benchmarks/agreement.py --demo            # a small network, on a CPU
    python benchmarks/agreement.py RUN --device cuda --autocast bfloat16 --csv table.csv --plot curves.png
    python benchmarks/agreement.py --checkpoint run/model.safetensors --data rsna --root DATA --device cuda
    python benchmarks/agreement.py --checkpoint run/model.safetensors --array images.npy    # uint8, NCHW
    python benchmarks/agreement.py --factory module:make    # make() -> (function of images, images)
    python benchmarks/agreement.py --read table.csv     # the table of an earlier run, finished or not

Outputs are, by default, the distances of five prototypes of the predicted class, the nearest first: what a
user sees explained (--choose total: those that the image changes most, whatever their class).

The reference is plain Owen sampling in two independent halves (or exact, where its evaluations suffice). The
halves' agreement tells how reliable it is, and no estimator can be expected to correlate with it better than
the square root of that. "Corrected" divides by that root. Coverage counts how often the 95% interval (widened
by the reference's own standard error) holds the reference. Speed is evaluations per second as a fraction of
plain forward passes, measured in the same run. Libraries that take one output at a time spend the stated
evaluations on each. dasp, moment_path and gradients run in float32.

By default budgets go to 16,384 and the reference has 131,072 evaluations (4,096 and 32,768 for fewer than 100
players). A line comes for every estimator on every image, and a CSV file gets every row at once; --limit
stops in time, with the table of what is done.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.progress import Progress, TaskID

from agreement_plan import REFERENCES, Step, fill_in, is_exact, plan, work_table
from agreement_subjects import Subject, open_subjects
from agreement_table import Measured, Reference, Row, Rows, compare, mean, plot, read_rows, reliability, table
from opening import add_network_options, device_name, make_console, plain_rate, timed
from protopfaith.correlation import pearson
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Attribution, Game, estimate
from protopfaith.shapley.estimators.moment_propagation.moment_path import NODES
from rivals import rivals

console = make_console()


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.read:
        _finish(read_rows(options.read), options)
        return
    device = torch.device(options.device)
    subjects = list(open_subjects(options, device))
    options.images = len(subjects)
    game = subjects[0].game
    fill_in(options, game.n_players)
    rate = plain_rate(game)
    console.print(
        f"{len(subjects)} images, {game.n_outputs} outputs each ({options.choose}), "
        f"{game.players.description}; plain forward passes: {rate:,.0f} images/s on {device_name(device)}, "
        f"{options.autocast or 'full precision'}",
        soft_wrap=True,
    )
    others = [] if options.no_rivals else list(rivals(console.print, options.shapiq_python))
    steps = plan(options, game.n_players, game.n_outputs, others)
    console.print(work_table(steps, options, rate, game.n_players))
    with Rows(options.csv) as rows:
        try:
            _measure_all(subjects, steps, options, rate, rows)
        except KeyboardInterrupt:
            console.print("Interrupted: this is what is done.")
        if rows:
            _finish(rows, options)


def _measure_all(
    subjects: list[Subject], steps: list[Step], options: argparse.Namespace, rate: float, rows: Rows
) -> None:
    begun = perf_counter()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("images", total=len(subjects))
        for number, subject in enumerate(subjects):
            start = perf_counter()
            _measure_image(number, subject, steps, options, rate=rate, rows=rows, bar=bar, task=task)
            bar.advance(task)
            now = perf_counter()
            left = options.limit - (now - begun) if options.limit else np.inf
            if number + 1 < len(subjects) and left < now - start:
                console.print(
                    f"{number + 1} images took {now - begun:.0f} s: no time is left for another one"
                )
                return


def _measure_image(
    number: int,
    subject: Subject,
    steps: list[Step],
    options: argparse.Namespace,
    *,
    rate: float,
    rows: Rows,
    bar: Progress,
    task: TaskID,
) -> None:
    bar.update(task, description=f"image {number}: reference")
    truth = _reference(subject.game, options)
    console.print(
        f"image {number} reference: reliability {_list(truth.reliability)} in {truth.seconds:.1f} s",
        soft_wrap=True,
    )
    for name, group in groupby((s for s in steps if number < s.images), key=lambda step: step.name):
        done: list[str] = []
        for step in group:
            bar.update(task, description=f"image {number}: {name} {step.budget or ''}")
            result = _measure(subject, step, bar, task)
            if isinstance(result, str):
                console.print(f"image {number} {name} is left out: {result}", soft_wrap=True)
                continue
            new = compare(result, truth, image=number, name=name, budget=step.budget, rate=rate)
            rows.add(new)
            done.append(_cell(new))
        if done:
            console.print(f"image {number} {name}: {'; '.join(done)}", soft_wrap=True)


def _cell(new: list[Row]) -> str:
    return f"{new[0].evaluations:,} {mean(new, 'correlation'):.3f} in {new[0].seconds:.2f} s"


def _list(numbers: list[float]) -> str:
    return " ".join(f"{number:.3f}" for number in numbers)


def _finish(rows: Rows, options: argparse.Namespace) -> None:
    average, lowest = reliability(rows)
    console.print(
        f"reference: {_reference_name(options)}; reliability {average:.4f} (lowest {lowest:.3f}), so "
        f"correlations end at {average**0.5:.4f}",
        soft_wrap=True,
    )
    console.print(table(rows))
    if options.plot:
        plot(rows, average**0.5, options.plot)


def _reference_name(options: argparse.Namespace) -> str:
    if options.read:
        return f"that of {options.read}"
    words = REFERENCES[options.reference_method][2]
    return f"2 x {options.reference // 2:,} evaluations of {words}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_network_options(parser)
    add = parser.add_argument
    add("--factory", help="module:function that returns (function of images, images)")
    add("--demo", action="store_true", help="train a small network on the embedded birds and use it")
    add("--array", type=Path, help="images as a .npy file instead, uint8")
    add("--read", type=Path, help="only show the table of this CSV file")
    add("--images", type=int, default=8)
    add("--prototypes", type=int, default=5, help="outputs per image")
    which = "which: those of the predicted class (default), the nearest, or those that the image changes most"
    add("--choose", default="class", choices=("class", "nearest", "total"), help=which)
    add("--players", type=int, default=16, help="side of the windows in pixels")
    add("--baseline", default="zero")
    add("--budgets", help="evaluations, with commas between")
    add("--reference", type=int, help="evaluations of the reference, both halves together")
    kinds = "; ".join(f"{name}: {words}" for name, (_, _, words) in REFERENCES.items())
    add("--reference-method", default="owen", choices=tuple(REFERENCES), help=kinds)
    add("--estimators", help="names, separated by commas; all by default")
    add("--sizes", type=int, default=8, help="coalition sizes of dasp")
    add("--dasp-images", type=int, default=4, help="images that dasp is run on")
    add("--fuse", action="store_true", help="compile the rules of dasp, whatever it finds worth it")
    add("--nodes", type=int, default=NODES, help="nodes of moment_path")
    add("--ablation", action="store_true", help="also the default estimator without each of its parts")
    add("--no-rivals", action="store_true", help="leave Captum and shapiq out")
    add("--shapiq-python", help="a Python with another version of shapiq, see shapiq_worker.py")
    add("--rival-images", type=int, default=1, help="images for their sampling estimators, which are slow")
    add("--device", default="cpu")
    add("--autocast", choices=("bfloat16", "float16"))
    add("--seed", type=int, default=0)
    add("--limit", type=float, help="seconds: begin no image that would not be done by then")
    add("--csv", type=Path)
    add("--plot", type=Path)
    options = parser.parse_args(arguments)
    if options.budgets:
        options.budgets = sorted(int(b) for b in options.budgets.split(","))
    if options.demo:
        options.players, options.images, options.prototypes = 4, min(options.images, 2), 3
        options.reference = min(options.reference or 16_384, 16_384)
        options.budgets = [b for b in options.budgets or [512, 1024, 2048] if b <= 2048]
    return options


def _reference(game: Game, options: argparse.Namespace) -> Reference:
    start = perf_counter()
    if is_exact(options, game.n_players):
        values = estimate(game, "exact").values
        known = [1.0] * len(values)
        return Reference(values, torch.zeros_like(values), known, perf_counter() - start)
    method, parts, _ = REFERENCES[options.reference_method]
    halves = [
        estimate(game, method, budget=options.reference // 2, seed=seed, **parts) for seed in (10_001, 10_002)
    ]
    values = torch.stack([half.values for half in halves]).mean(0)
    errors = torch.stack([half.standard_errors for half in halves]).square().sum(0).sqrt() / 2
    r = pearson(halves[0].values, halves[1].values).clamp_min(0)
    return Reference(values, errors, (2 * r / (1 + r)).tolist(), perf_counter() - start)


def _measure(subject: Subject, step: Step, bar: Progress, task: TaskID) -> Measured | str:
    """The result, or why there is none."""
    game = subject.full if step.full else subject.game
    name = bar.tasks[0].description

    def progress(done: int, most: int) -> None:
        bar.update(task, description=f"{name}, {done:,} of {most:,} passes")

    try:
        seconds, result = timed(lambda: step.run(subject, progress), game.device)
    except (ProtoPFaithError, ValueError, NotImplementedError, MemoryError) as error:
        return str(error)
    if isinstance(result, Attribution):
        if bool(result.values.isnan().any()):
            raise KeyboardInterrupt  # an interrupted estimator gives what it has
        low, high = result.interval()
        return Measured(result.values, (high - low) / 2, result.evaluations, seconds)
    values = result.detach().double().cpu()
    return Measured(values, torch.full_like(values, torch.nan), step.evaluations, seconds)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # end as after Ctrl-C
    main()
