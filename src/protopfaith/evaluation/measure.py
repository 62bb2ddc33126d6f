"""How faithful is it? Every explainer, every metric, on one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.request import make_request
from protopfaith.evaluation.bench.runner import Bench, Step
from protopfaith.evaluation.bench.settings import TRUTH, BenchSettings
from protopfaith.evaluation.bench.subjects import Subject, prototypes_of
from protopfaith.evaluation.distributed import measure_on_ray
from protopfaith.evaluation.metrics.sanity import prototype_health
from protopfaith.evaluation.metrics.truth import Truth
from protopfaith.evaluation.results import ExplainerResult, Faithfulness
from protopfaith.progress import Bar
from protopfaith.training import Run


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
    ray: str | None = None,
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
        budget: evaluations of the network per image, for explainers that sample; 1,024, or 12,288 on a GPU
        truth_budget: evaluations per image for the true Shapley values; 4,096, or 65,536 on a GPU; 0 for none
        sizes: coalition sizes of DASP; 4, or 8 on a GPU
        checked: images for axioms and sanity checks; 2, or 8 on a GPU
        quantus: adds metrics of the Quantus library
        memory: bytes that a batch may take
        moment_batch: images in a moment pass (DASP, moment path); as many as memory allows by default, which
            is measured for every image
        autocast: a dtype such as `torch.bfloat16`, or a name that
            `protopfaith.devices.choose_autocast` knows, for plain forward passes; moment propagation,
            gradients and axioms stay in float32
        progress: True for a progress bar, or a function that is told what begins, such as "dasp: curves"
        seed: of all random choices
        device: where to compute
        ray: `"local"`, or the address of a Ray cluster, whose workers measure into the same folder

    >>> from tempfile import mkdtemp
    >>> quick = dict(prototypes=1, steps=5, players=16, budget=64, truth_budget=0, checked=1, progress=False)
    >>> found = faithfulness("runs/birds", mkdtemp(), explainers=["owen", "random"], **quick)
    >>> found.results
    (ExplainerResult('owen', 1 prototypes), ExplainerResult('random', 1 prototypes))
    """
    check_arguments(faithfulness, locals())
    request = make_request(
        run,
        out_folder,
        prototypes=prototypes,
        explainers=explainers,
        limits=limits,
        players=players,
        steps=steps,
        budget=budget,
        truth_budget=truth_budget,
        sizes=sizes,
        checked=checked,
        quantus=quantus,
        seed=seed,
        memory=memory,
        moment_batch=moment_batch,
        autocast=autocast,
        device=device,
    )
    settings, folder = request.settings, request.folder
    with _Steps(progress) as telling:
        bench, sample = request.open(telling)
        aside = {} if ray is None else measure_on_ray(request, ray, bench, telling.bar)
        names = [name for name in request.names if name not in aside]
        telling.expect(sum(map(bench.steps_of, [*names, *([TRUTH] if settings.truth_budget else [])])))
        truth = bench.truth() if settings.truth_budget else None
        results, skipped = _results(bench, names, truth, aside)
        telling("tables and figures")
    told = _settings(request.run, bench.settings, request.device)
    found = _found(bench, results, truth, sample, folder=folder, skipped=skipped, settings=told)
    from protopfaith.show.faithfulness.files import write

    write(found, bench, bench.model, f"Faithfulness of explanations: {request.run.folder.name}")
    return found


def _found(
    bench: Bench,
    results: tuple[ExplainerResult, ...],
    truth: Truth | None,
    sample: list[Tensor],
    **more: Any,
) -> Faithfulness:
    """Results with what the bench knows; `more`: folder, skipped, settings."""
    model, players = bench.model, bench.settings.options.players
    return Faithfulness(
        prototypes=tuple(bench.prototypes),
        classes=len(model.class_names),
        prototypes_per_class=len(model.prototypes) / len(model.class_names),
        steps=bench.settings.steps,
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
    bench: Bench, names: Sequence[str], truth: Truth | None, aside: Mapping[str, str]
) -> tuple[tuple[ExplainerResult, ...], dict[str, str]]:
    results, skipped = [], dict(aside)
    for name in names:
        try:
            results.append(bench.result(name, truth))
        except ProtoPFaithError as problem:  # a package that is missing, an operation without a moment rule
            skipped[name] = str(problem).splitlines()[0]
    if not results:
        raise ProtoPFaithError(f"No explainer could run: {next(iter(skipped.values()))}")
    return tuple(results), skipped


def _object_share(subjects: Sequence[Subject]) -> float:
    masks = [subject.foreground for subject in subjects if subject.foreground is not None]
    return float(torch.stack(masks).double().mean()) if masks else float("nan")


def _settings(run: Run, settings: BenchSettings, device: torch.device | str) -> dict[str, Any]:
    decisive = settings.of_explainer("all")
    for internal in ("explainer", "players"):
        decisive.pop(internal)
    return {
        "run": run.folder.name,
        "device": str(device),
        "players": settings.options.players.description,
        "steps": settings.steps,
        "truth_budget": settings.truth_budget,
        "checked": settings.checked,
        "limits": dict(settings.limits),
        "mean_color": settings.mean_color,
        **decisive,
    }


class _Steps:
    """Is told what begins, and draws a bar over it (True), passes it on (a function), or keeps silent."""

    def __init__(self, progress: bool | Step):
        self.listener = progress if callable(progress) else None
        self.bar = Bar(progress is True)
        self.begun = False

    def __enter__(self) -> _Steps:
        self.bar.__enter__().begin("preparing")
        return self

    def __exit__(self, *end: object) -> None:
        self.bar.__exit__(*end)

    def expect(self, steps: int) -> None:
        """So many steps there will be."""
        self.bar.update(total=steps)

    def __call__(self, what: str) -> None:
        if self.listener is not None:
            self.listener(what)
        if self.begun:
            self.bar.advance()
        self.bar.update(what)
        self.begun = True
