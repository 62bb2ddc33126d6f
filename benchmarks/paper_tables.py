"""The paper's tables from our own measurements: every explainer on one trained run.

    python benchmarks/paper_tables.py runs/cub --root data --device cuda --out tables/cub --figures 3
    python benchmarks/paper_tables.py runs/rsna --root data --device cuda --all --out tables/rsna --figures 3
    python benchmarks/paper_tables.py runs/cub --root data --device cuda --out tables/cub --no-tables --fine \
        --limit-seconds 300

Prints Markdown, writes it to tables.md beside CSV, curves, page and figures, and tells what each step cost
(costs.csv). Results are kept: the same command again, or with more prototypes, only adds. DASP, plain Owen
sampling and the true values are judged on the first 20 prototypes drawn; a second table holds all
explainers on those. `--fine` is the paper's own setting (2 x 2 windows, 32 sizes) on one image: it stops
after `--limit-seconds`, says how far it got, and goes on when called again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from case_figures import case_figures
from fine_dasp import FinePlan, fine_dasp
from metering import Meter
from one_by_one import one_by_one
from paper_markdown import markdown
from protopfaith.data import ImageData
from protopfaith.devices import choose_autocast
from protopfaith.evaluation import default_explainers, faithfulness
from protopfaith.evaluation.bench.settings import default_window
from protopfaith.evaluation.prediction import classify_set
from protopfaith.explanation.settings import usual_budget
from protopfaith.training import Run
from protopfaith.writing import atomic
from scattering import scattering

GIB = 1 << 30


class LoadedRun(Run):
    """A run whose images are loaded once for all steps."""

    @cached_property
    def _data(self) -> ImageData:
        return super().data()

    def data(self) -> ImageData:
        return self._data


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    run, begin = LoadedRun(options.run, options.root), time.perf_counter()
    options.out.mkdir(parents=True, exist_ok=True)
    written = options.out / "tables.md"
    if options.tables:
        written.unlink(missing_ok=True)
    steps = {tables: options.tables, figures: options.figures, fine: options.fine}
    for step in (step for step, wanted in steps.items() if wanted):
        text = step(run, options)
        print(text, flush=True)
        with written.open("a", encoding="utf-8") as file:  # at once: a later step may be cut short
            file.write(text + "\n\n")
    print(f"\nWritten to {options.out} in {time.perf_counter() - begin:.0f} s")


def tables(run: LoadedRun, options: argparse.Namespace) -> str:
    """Judges all explainers; the tables in Markdown."""
    meter = Meter()
    limits = {
        "dasp": options.dasp_prototypes,
        "owen": options.owen_prototypes,
        "truth": options.truth_prototypes,
    }
    with meter.counting():
        found = faithfulness(
            run,
            options.out,
            prototypes=None if options.all else options.prototypes,
            explainers=options.explainers.split(",") if options.explainers else default_explainers(),
            limits={name: limit for name, limit in limits.items() if limit},
            seed=options.seed,
            steps=options.steps,
            players=options.players,
            budget=options.budget,
            truth_budget=options.truth_budget,
            sizes=options.sizes,
            checked=options.checked,
            device=options.device,
            memory=_memory(options),
            moment_batch=options.moment_batch,
            autocast=options.autocast,
            progress=_told(meter),
        )
        meter.step("test accuracy")
        model = run.model(options.device)
        test = classify_set(model, run.data().test, run.preprocessing(), 256).balanced_accuracy
        meter.step("one feature a step")
        of_run, memory = (found, model, run.data(), run.preprocessing()), _memory(options)
        remarks = [one_by_one(*of_run, memory)]
        meter.step("scattered or together")
        side = options.players or default_window(run.preprocessing().size)
        remarks.append(scattering(*of_run, side=side, memory=memory, autocast=options.autocast))
    costs = meter.frame()
    with atomic(options.out / "costs.csv") as partial:
        costs.to_csv(partial)
    print(costs.to_string())
    return "\n\n".join([markdown(found, run, options, test), *remarks])


def figures(run: LoadedRun, options: argparse.Namespace) -> str:
    written = case_figures(
        run,
        run.data(),
        options.out / "figures",
        options.figures,
        device=options.device,
        seed=options.seed,
        budget=options.budget,
        memory=_memory(options),
        autocast=options.autocast,
    )
    return "\n".join(f"![{path.stem}]({path.relative_to(options.out)})" for path in written)


def fine(run: LoadedRun, options: argparse.Namespace) -> str:
    plan = FinePlan(
        window=options.fine_players,
        sizes=options.fine_sizes,
        steps=options.steps,
        coarse=options.players or default_window(run.preprocessing().size),
        seed=options.seed,
        seconds=options.limit_seconds,
        memory=_memory(options),
        moment_batch=options.moment_batch,
    )
    return fine_dasp(run, options.out, options.device, plan)


def _told(meter: Meter) -> Any:
    """Says which part begins, and counts for it."""

    def step(what: str) -> None:
        before = meter.current
        meter.step(what)
        if meter.current != before:
            print(f"{time.strftime('%H:%M:%S')} {meter.current}", flush=True)

    return step


def _memory(options: argparse.Namespace) -> int | None:
    return int(options.memory * GIB) if options.memory else None


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("run", type=Path, help="the folder of a trained run")
    add("--out", type=Path, required=True, help="where everything is written")
    add("--root", type=Path, help="the folder of the images, if not the one the recipe names")
    add("--device", default="cpu")
    add("--prototypes", type=int, default=100, help="how many, drawn at random among distinct ones")
    add("--all", action="store_true", help="every distinct prototype")
    add("--dasp-prototypes", type=int, default=20, help="the first of them, for DASP; 0: all")
    add("--owen-prototypes", type=int, default=20, help="the same for plain Owen sampling")
    add("--truth-prototypes", type=int, default=20, help="the same for the true Shapley values")
    add("--explainers", help="names with commas between; all by default")
    add(
        "--budget",
        type=int,
        help="evaluations an image, for those that sample; as explain takes by default",
    )
    add("--truth-budget", type=int, default=32_768, help="evaluations an image for the true values; 0: none")
    add("--steps", type=int, default=100, help="T")
    add("--players", type=int, help="side of the players' windows; 16, or an eighth of small images")
    add("--sizes", type=int, default=8, help="coalition sizes of DASP")
    add("--checked", type=int, default=2, help="images for axioms and sanity checks")
    add("--autocast", default="auto", help="auto (bfloat16 on a GPU that has it), off, bfloat16, float16")
    add("--memory", type=float, help="GiB that a batch may take; 24 on a GPU by default")
    add("--moment-batch", type=int, help="images in a moment pass; 128 on a GPU, else as memory allows")
    add("--no-tables", dest="tables", action="store_false", help="only what else is asked for")
    add("--figures", type=int, default=0, metavar="N", help="draw the paper's figure for N test images")
    add("--fine", action="store_true", help="DASP in the paper's own setting, on one image")
    add("--fine-players", type=int, default=2)
    add("--fine-sizes", type=int, default=32)
    add("--limit-seconds", type=float, default=0, help="for --fine: stop then; 0: go to the end")
    add("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    on_gpu = options.device != "cpu"
    options.budget = options.budget or usual_budget(options.device)
    options.autocast = choose_autocast(options.autocast, torch.device(options.device))
    options.memory = options.memory or (24 if on_gpu else None)
    options.moment_batch = options.moment_batch or (128 if on_gpu else None)
    return options


if __name__ == "__main__":
    main()
