"""How faithful is it? Every explainer, every metric, on one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.data import ImageSet, Preprocessing
from protopfaith.devices import choose_autocast
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.agreement import Truth
from protopfaith.evaluation.bench import Bench, Step
from protopfaith.evaluation.explainers import default_explainers
from protopfaith.evaluation.plan import TRUTH, Plan, make_plan
from protopfaith.evaluation.request import check_request
from protopfaith.evaluation.sanity import prototype_health
from protopfaith.evaluation.store import Store
from protopfaith.evaluation.subjects import Subject, choose_prototypes, find_subjects, prototypes_of
from protopfaith.evaluation.summary import ExplainerResult, Faithfulness
from protopfaith.files import sha256
from protopfaith.show.faithfulness_files import write
from protopfaith.training import Run

SAMPLE = 512  # training images for the mean color and the variation of distances
VERSION = 2  # of what is computed: another one computes anew


def faithfulness(
    run: Run | Path | str,
    out_folder: Path | str | None = None,
    *,
    prototypes: int | Sequence[int] | None = 8,
    explainers: Sequence[str] | None = None,
    limits: Mapping[str, int] | None = None,
    seed: int = 0,
    steps: int | None = None,
    players: int | None = None,
    budget: int | None = None,
    truth_budget: int | None = None,
    sizes: int | None = None,
    checked: int | None = None,
    quantus: bool = False,
    device: torch.device | str = "cpu",
    memory: int | None = None,
    moment_batch: int | None = None,
    autocast: torch.dtype | str | None = None,
    progress: bool | Step = True,
) -> Faithfulness:
    """Judges explainers on a run by AOPC, agreement with true Shapley values, axioms and sanity checks.

    Writes a page, figures and CSV. What is computed is kept in the folder as it comes: the same call goes on
    where it was interrupted, and more prototypes or explainers add to what is there. What can be known to be
    wrong beforehand, such as a budget too small for the players, is one error before any work.

    Args:
        run: a training run, or its folder
        out_folder: for page, figures, CSV and results; `faithfulness` in the run's folder by default
        prototypes: how many, drawn at random among distinct ones; their indices; None for all
        explainers: names of `EXPLAINERS`; all but those that test the metrics by default
        limits: prototypes at most, the first ones drawn, for what costs too much on all of them, such as
            `{"dasp": 20, "truth": 20}`. Tables then also compare all explainers on those they share
        steps: T, the steps of a removal curve, at least 5; 50, or 100 on a GPU
        players: the side of the windows that are players, in pixels; 16, or an eighth of small images
        budget: evaluations of the network an image, for explainers that sample; 1,024, or 12,288 on a GPU
        truth_budget: evaluations an image for the true Shapley values; 4,096, or 65,536 on a GPU; 0 for none
        sizes: coalition sizes of DASP; 4, or 8 on a GPU
        checked: images for axioms and sanity checks; 2, or 8 on a GPU
        quantus: adds metrics of the Quantus library
        memory: bytes that a batch may take
        moment_batch: images in a moment pass (DASP, moment path); as many as memory allows by default, which
            is measured for every image
        autocast: a dtype such as `torch.bfloat16`, or a name that
            `protopfaith.devices.choose_autocast` knows, for plain forward passes; moment propagation,
            gradients and axioms stay in full precision
        progress: True for a progress bar, or a function that is told what begins, such as "dasp: curves"
    """
    run = run if isinstance(run, Run) else Run(run)
    names = list(dict.fromkeys(default_explainers() if explainers is None else explainers))
    plan = make_plan(
        run.preprocessing().size,
        device,
        players=players,
        steps=steps,
        budget=budget,
        truth_budget=truth_budget,
        sizes=sizes,
        checked=checked,
        limits=limits,
        quantus=quantus,
        seed=seed,
        memory=memory,
        moment_batch=moment_batch,
        autocast=choose_autocast(autocast, torch.device(device)),
    )
    check_request(names, prototypes, plan)
    folder = Path(out_folder) if out_folder is not None else run.folder / "faithfulness"
    with _progress(progress) as (begin, step):
        bench, sample = _open_bench(run, plan, prototypes=prototypes, folder=folder, device=device, step=step)
        begin(sum(map(bench.steps_of, [*names, *([TRUTH] if plan.truth_budget else [])])))
        truth = bench.truth() if plan.truth_budget else None
        results, skipped = _results(bench, names, truth)
        step("tables and figures")
    settings = _settings(run, bench.plan, device)
    found = _found(bench, results, truth, sample, folder=folder, skipped=skipped, settings=settings)
    write(found, bench, bench.model, f"Faithfulness of explanations: {run.folder.name}")
    return found


def _open_bench(
    run: Run,
    plan: Plan,
    *,
    prototypes: int | Sequence[int] | None,
    folder: Path,
    device: torch.device | str,
    step: Step,
) -> tuple[Bench, list[Tensor]]:
    """Everything loaded: a bench for explainers, and a sample of training images."""
    # Channels last: the same numbers, but faster.
    model = run.model(device).to(memory_format=torch.channels_last)
    data, preprocessing = run.data(), run.preprocessing()
    chosen = choose_prototypes(model, prototypes, plan.options.seed)
    subjects = find_subjects(model, data, chosen, preprocessing)
    sample = _sample(data.train, preprocessing, model.prototypes.device)
    plan = replace(plan, mean_color=_mean_color(sample))
    store = Store(folder / "results", {"model": sha256(run.model_path), "version": VERSION})
    return Bench(model, subjects, chosen, plan=plan, store=store, step=step), sample


def _found(
    bench: Bench,
    results: tuple[ExplainerResult, ...],
    truth: Truth | None,
    sample: list[Tensor],
    **more: Any,
) -> Faithfulness:
    """Results with what the bench knows; `more`: folder, skipped, settings."""
    model, players = bench.model, bench.plan.options.players
    return Faithfulness(
        prototypes=tuple(bench.prototypes),
        classes=len(model.class_names),
        prototypes_per_class=len(model.prototypes) / len(model.class_names),
        steps=bench.plan.steps,
        players=players.description,
        n_players=len(players),
        results=results,
        truth=truth,
        truth_prototypes=tuple(prototypes_of(bench.subjects_of(TRUTH))) if truth is not None else (),
        object_share=_object_share(bench.subjects),
        health=prototype_health(model, sample),
        **more,
    )


def _results(
    bench: Bench, names: Sequence[str], truth: Truth | None
) -> tuple[tuple[ExplainerResult, ...], dict[str, str]]:
    results, skipped = [], {}
    for name in names:
        try:
            results.append(bench.result(name, truth))
        except ProtoPFaithError as problem:  # a package that is missing, an operation without a moment rule
            skipped[name] = str(problem).splitlines()[0]
    if not results:
        raise ProtoPFaithError(f"No explainer could run: {next(iter(skipped.values()))}")
    return tuple(results), skipped


def _sample(images: ImageSet, preprocessing: Preprocessing, device: torch.device) -> list[Tensor]:
    """Training images, evenly over the set, normalized, in batches."""
    indices = range(0, len(images), -(-len(images) // SAMPLE))
    batches = [list(indices)[i : i + 64] for i in range(0, len(indices), 64)]
    return [preprocessing.normalize(torch.stack([images.image(i) for i in b])).to(device) for b in batches]


def _mean_color(sample: Sequence[Tensor]) -> tuple[float, ...]:
    color = torch.cat([batch.mean((2, 3)) for batch in sample]).mean(0)
    return tuple(round(c, 4) for c in color.tolist())


def _object_share(subjects: Sequence[Subject]) -> float:
    masks = [subject.foreground for subject in subjects if subject.foreground is not None]
    return float(torch.stack(masks).double().mean()) if masks else float("nan")


def _settings(run: Run, plan: Plan, device: torch.device | str) -> dict[str, Any]:
    decisive = plan.of_explainer("all")
    for internal in ("explainer", "players"):
        decisive.pop(internal)
    return {
        "run": run.folder.name,
        "device": str(device),
        "players": plan.options.players.description,
        "steps": plan.steps,
        "truth_budget": plan.truth_budget,
        "checked": plan.checked,
        "limits": dict(plan.limits),
        "mean_color": plan.mean_color,
        **decisive,
    }


@contextmanager
def _progress(shown: bool | Step) -> Iterator[tuple[Any, Step]]:
    """Functions to tell how many steps there will be, and that one begins."""
    if callable(shown):
        yield (lambda total: None), shown
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, transient=True, disable=not shown) as bar:
        task = bar.add_task("preparing", total=None)
        started = [False]

        def begin(total: int) -> None:
            bar.update(task, total=total)

        def step(what: str) -> None:
            bar.update(task, description=what, advance=1 if started[0] else 0)
            started[0] = True

        yield begin, step
