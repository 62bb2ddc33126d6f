"""Why this class? The explanation of one image."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.explanation.class_maps import class_map, compare
from protopfaith.explanation.contribution import class_row, decompose, find_class, similarities
from protopfaith.explanation.explainer import Explainer, SourceSide
from protopfaith.explanation.looking import Case, look, mark_duplicates, rival
from protopfaith.explanation.picture import ImageLike
from protopfaith.explanation.playing import (
    COARSE_BUDGET,
    PlayersLike,
    Settings,
    coarse_players,
    distances_and_logit,
    make_players,
    play,
    players_name,
    spread_outputs,
    with_autocast,
)
from protopfaith.explanation.protopnet_map import crop_box
from protopfaith.explanation.regions import region_values
from protopfaith.explanation.result import Explanation, PrototypeEvidence, SecondBaseline
from protopfaith.explanation.rounding import ROUNDING
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Attribution
from protopfaith.training import Run

Report = Callable[[str, int, int], None]  # what is being done, evaluations done, evaluations expected


def explain(
    model: ProtoPNet | Run | Path | str | Explainer,
    image: ImageLike,
    *,
    players: PlayersLike = 16,
    precision: float | None = None,
    budget: int | None = None,
    estimator: str = "default",
    target: str | int | None = None,
    versus: str | int | None = None,
    baseline: str | float | Sequence[float] | Tensor = "zero",
    second_baseline: str | float | Sequence[float] | Tensor | None = None,
    sources: bool = True,
    duplicate_tolerance: float | None = None,
    name: str = "",
    seed: int = 0,
    options: dict[str, Any] | None = None,
    batch_size: int | None = None,
    memory: int | None = None,
    autocast: torch.dtype | str | None = None,
    device: torch.device | str | None = None,
    preprocessing: Preprocessing | None = None,
    images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
    on_coarse: Callable[[Explanation], None] | None = None,
    progress: Report | None = None,
) -> Explanation:
    """Explains the decision of a network on one image.

    Args:
        model: a run, its folder, a network, or an :class:`Explainer` (keeps everything loaded between
            images).
        image: a path, a Pillow image, a uint8 tensor of any size, or a normalized float tensor.
        players: the side of square windows in pixels, ``"superpixels:60"``, or a label image (H x W, int64).
        precision: relative standard error at which to stop, for the class's prototypes and the class itself.
        budget: evaluations of the network at most (4,096 where neither is given).
        estimator: a name of :data:`protopfaith.shapley.ESTIMATORS`; ``options`` are its own.
        target: the class to explain, by name or number; the predicted one by default.
        versus: another class: "why the target and not this one?".
        baseline: what stands where a region is absent; ``second_baseline`` repeats the game with another one.
        autocast: runs the games (not the decision itself) in a type such as ``torch.bfloat16``, several times
            as fast on a GPU; "auto" does so where the GPU is able to. The explanation says so and by how much
            that changed the totals. Moment propagation (``dasp``, ``moment_path``) never does.
        sources: also explain every prototype on its source image.
        duplicate_tolerance: squared distance up to which prototypes count as one (1e-6 times L).
        on_coarse: gets a quick answer on 7 x 7 windows first.
        progress: gets (what is done, evaluations done, evaluations expected).
    """
    explainer = as_explainer(model, preprocessing=preprocessing, images=images, device=device)
    settings = Settings(
        players, precision, budget, estimator, baseline, seed, options or {}, batch_size, memory
    )
    settings = with_autocast(settings, autocast, explainer.device)
    steps = explanation_steps(
        explainer,
        image,
        settings,
        target=target,
        versus=versus,
        second_baseline=second_baseline,
        sources=sources,
        duplicate_tolerance=duplicate_tolerance,
        name=name,
        coarse=on_coarse is not None,
        progress=progress,
    )
    result = next(steps)
    for better in steps:
        if on_coarse is not None:
            on_coarse(result)
        result = better
    return result


def as_explainer(model: ProtoPNet | Run | Path | str | Explainer, **options: Any) -> Explainer:
    return model if isinstance(model, Explainer) else Explainer(model, **options)


def explanation_steps(
    explainer: Explainer,
    image: ImageLike,
    settings: Settings,
    *,
    target: str | int | None = None,
    versus: str | int | None = None,
    second_baseline: str | float | Sequence[float] | Tensor | None = None,
    sources: bool = True,
    duplicate_tolerance: float | None = None,
    name: str = "",
    coarse: bool = True,
    progress: Report | None = None,
) -> Iterator[Explanation]:
    """A quick answer on 7 x 7 windows (if ``coarse``), then the one that was asked for."""
    start = time.perf_counter()
    model = explainer.model
    picture = explainer.open(image, name)
    x = picture.input.to(explainer.device)
    case = look(model, picture, x, find_class(model, target), find_class(model, versus))
    if sources:  # before any work: without projection there is nothing to show
        for prototype in case.named:
            explainer.source(prototype)
    duplicates = mark_duplicates(model, case.named, duplicate_tolerance)

    def reporter(stage: str) -> Callable[[int, int], None] | None:
        return None if progress is None else (lambda done, expected: progress(stage, done, expected))

    def played(plan: Settings, stage: str, **more: Any) -> Attribution:
        row = class_row(model, case.target, case.versus)
        places = [*case.named, len(model.prototypes)]
        some = plan.shown_alone
        function = distances_and_logit(model, case.named if some else None, row)
        driving = list(range(len(places))) if some else places
        # A logit is a small difference of large sums, so rounding alone may look like a random function
        # there; the distances, of which it is made, were checked.
        found = play(function, x, plan, driving=driving, progress=reporter(stage), check=False, **more)
        return spread_outputs(found, places, places[-1] + 1) if some else found

    def assembled(result: Attribution, plan: Settings, **more: Any) -> Explanation:
        seconds = time.perf_counter() - start
        return _assemble(explainer, case, duplicates, result, settings=plan, seconds=seconds, **more)

    if coarse:
        quick = replace(settings, precision=None, budget=COARSE_BUDGET, estimator="default", options={})
        result = played(quick, "coarse answer", players=coarse_players(x))
        known = sources and explainer.has_sources(case.named, settings)
        sides = explainer.explain_sources(case.named, settings) if known else {}
        yield assembled(result, quick, sides=sides, second=None, coarse=True)
    regions = make_players(settings.players, x)
    result = played(settings, "test image", players=regions)
    second = None
    if second_baseline is not None:
        other = played(replace(settings, baseline=second_baseline), "second baseline", players=regions)
        second = compare(model, case, result, other)
    sides = explainer.explain_sources(case.named, settings, reporter("source images")) if sources else {}
    yield assembled(result, settings, sides=sides, second=second, coarse=False)


def _assemble(
    explainer: Explainer,
    case: Case,
    duplicates: dict[int, tuple[int | None, str]],
    result: Attribution,
    *,
    settings: Settings,
    seconds: float,
    sides: dict[int, SourceSide],
    second: SecondBaseline | None,
    coarse: bool,
) -> Explanation:
    model, n = explainer.model, len(explainer.model.prototypes)
    row = class_row(model, case.target, case.versus).cpu().double()
    scores = dict(
        zip(case.decomposition.prototypes.tolist(), case.decomposition.scores.tolist(), strict=True)
    )
    similarity = similarities(model, case.distances)
    evidence = []
    for place, prototype in enumerate(case.named):
        owner = int(model.prototype_classes[prototype])
        evidence.append(
            PrototypeEvidence(
                prototype,
                owner,
                model.class_names[owner],
                distance=float(case.distances[prototype]),
                similarity=float(similarity[prototype]),
                weight=float(row[prototype]),
                paper_score=case.paper[prototype],
                score=scores[prototype],
                source=model.sources[prototype],
                duplicate_of=duplicates[prototype][0],
                duplicate_kind=duplicates[prototype][1],
                test=region_values(result, prototype, -1),
                activation=case.activations[place],
                box=crop_box(case.activations[place]),
                source_side=sides.get(prototype),
            )
        )
    from torchvision.transforms.v2.functional import pil_to_tensor

    picture = case.picture
    return Explanation(
        name=picture.name,
        pixels=picture.pixels,
        original=pil_to_tensor(picture.original),
        class_names=model.class_names,
        probabilities=case.logits.softmax(0),
        prediction=int(case.logits.argmax()),
        target=case.target,
        versus=case.versus,
        decomposition=case.decomposition,
        runner_up=decompose(model, case.distances, case.target, rival(case)),
        evidence=tuple(evidence),
        class_map=class_map(model, result, row),
        prototype_values=result.values[:n],
        method=result.method,
        baseline=result.baseline,
        evaluations=result.evaluations,
        precision=result.precision,
        precision_asked=settings.precision,
        reached=result.reached,
        second=second,
        coarse=coarse,
        seconds=seconds,
        network={
            "encoder": model.encoder_name,
            "similarity": model.similarity,
            "activation": model.activation,
            "prototypes": n,
            "weights_sha256": explainer.weights_hash,
        },
        settings={
            "players": result.players.description,
            "players_asked": players_name(settings.players),
            "budget": settings.budget,
            "seed": settings.seed,
            "options": dict(settings.options),
            "autocast": None if settings.autocast is None else str(settings.autocast).removeprefix("torch."),
            "rounding": result.options.get(ROUNDING),
        },
        notes=_notes(settings, sides),
    )


def _notes(settings: Settings, sides: dict[int, SourceSide]) -> tuple[str, ...]:
    if sides and not isinstance(settings.players, int | str):
        size = next(iter(sides.values())).regions.players.description
        return (f"The regions were drawn on the test image; source images are divided into {size} instead.",)
    return ()
