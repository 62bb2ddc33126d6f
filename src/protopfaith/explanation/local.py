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
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.assembling import assemble
from protopfaith.explanation.class_maps import compare
from protopfaith.explanation.decision import Case, look, mark_duplicates
from protopfaith.explanation.decomposition import class_row, find_class
from protopfaith.explanation.explainer import Explainer
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.game import (
    COARSE_BUDGET,
    Progress,
    distances_and_logit,
    play,
    rehearse,
    spread_outputs,
)
from protopfaith.explanation.picture import ImageLike
from protopfaith.explanation.settings import (
    BaselineLike,
    PlayersLike,
    Settings,
    coarse_players,
    make_players,
    with_autocast,
    with_budget,
)
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Attribution, Players
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
    baseline: BaselineLike = "zero",
    second_baseline: BaselineLike | None = None,
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
        model: a run, its folder, a network, or an `Explainer` (keeps everything loaded between
            images, and has `device`, `preprocessing` and `images` already).
        image: a path, a Pillow image, a uint8 tensor of any size, or a normalized float tensor.
        players: the side of square windows in pixels, `"superpixels:60"`, or a label image (H x W, int64).
        precision: relative standard error at which to stop, for the class's prototypes and the class itself.
        budget: evaluations of the network at most; where neither is given 4,096, on a GPU 12,288.
        estimator: a name of `protopfaith.shapley.ESTIMATORS`; `options` are its own.
        target: the class to explain, by name or number; the predicted one by default.
        versus: another class: "why the target and not this one?".
        baseline: what stands where a region is absent; `second_baseline` repeats the game with another one.
        autocast: runs the games (not the decision itself) in a type such as `torch.bfloat16`, several times
            as fast on a GPU; "auto" does so where the GPU is able to. The explanation says so and by how much
            that changed the totals. Moment propagation (`dasp`, `moment_path`) never does.
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
    return explain_with(
        explainer,
        image,
        settings,
        on_coarse=on_coarse,
        target=target,
        versus=versus,
        second_baseline=second_baseline,
        sources=sources,
        duplicate_tolerance=duplicate_tolerance,
        name=name,
        progress=progress,
    )


def explain_with(
    explainer: Explainer,
    image: ImageLike,
    settings: Settings,
    *,
    on_coarse: Callable[[Explanation], None] | None = None,
    **options: Any,
) -> Explanation:
    """The last of `explanation_steps`, whose `options` these are; `on_coarse` gets the first."""
    steps = explanation_steps(explainer, image, settings, coarse=on_coarse is not None, **options)
    if on_coarse is not None:
        on_coarse(next(steps))
    return next(steps)


def as_explainer(model: ProtoPNet | Run | Path | str | Explainer, **options: Any) -> Explainer:
    """The explainer itself, which has its device and images already, or one made with `options`."""
    if not isinstance(model, Explainer):
        return Explainer(model, **options)
    given = [f"{name}=..." for name, value in options.items() if value is not None]
    if given:
        raise ProtoPFaithError(
            f"An Explainer takes {' and '.join(given)} when it is made: give it there, as in "
            f"Explainer(run, {', '.join(given)}), not beside the Explainer."
        )
    return model


def explanation_steps(
    explainer: Explainer,
    image: ImageLike,
    settings: Settings,
    *,
    target: str | int | None = None,
    versus: str | int | None = None,
    second_baseline: BaselineLike | None = None,
    sources: bool = True,
    duplicate_tolerance: float | None = None,
    name: str = "",
    coarse: bool = True,
    progress: Report | None = None,
) -> Iterator[Explanation]:
    """A quick answer on 7 x 7 windows (if `coarse`), then the one that was asked for."""
    start = time.perf_counter()
    model = explainer.model
    settings = with_budget(settings, explainer.device)
    picture = explainer.open(image, name)
    x = picture.input.to(explainer.device)
    case = look(model, picture, x, find_class(model, target), find_class(model, versus))
    if coarse or second_baseline is not None:  # else the one game complains itself, before it begins
        rehearse(settings, x, second_baseline)
    if sources:  # before the work, too
        for prototype in case.named:
            explainer.find_source(prototype)
    duplicates = mark_duplicates(model, case.named, duplicate_tolerance)

    def reporter(stage: str) -> Callable[[int, int], None] | None:
        return None if progress is None else (lambda done, expected: progress(stage, done, expected))

    def assembled(result: Attribution, plan: Settings, **more: Any) -> Explanation:
        seconds = time.perf_counter() - start
        return assemble(explainer, case, duplicates, result, settings=plan, seconds=seconds, **more)

    if coarse:
        quick = replace(settings, precision=None, budget=COARSE_BUDGET, estimator="default", options={})
        result = _play(model, case, x, quick, players=coarse_players(x), progress=reporter("coarse answer"))
        known = sources and explainer.has_sources(case.named, settings)
        sides = explainer.explain_sources(case.named, settings) if known else {}
        yield assembled(result, quick, sides=sides, second=None, coarse=True)
    regions = make_players(settings.players, x)
    result = _play(model, case, x, settings, players=regions, progress=reporter("test image"))
    second = None
    if second_baseline is not None:
        other = replace(settings, baseline=second_baseline)
        repeated = _play(model, case, x, other, players=regions, progress=reporter("second baseline"))
        second = compare(model, case, result, repeated)
    sides = explainer.explain_sources(case.named, settings, reporter("source images")) if sources else {}
    yield assembled(result, settings, sides=sides, second=second, coarse=False)


def _play(
    model: ProtoPNet,
    case: Case,
    x: Tensor,
    settings: Settings,
    *,
    players: Players,
    progress: Progress | None,
) -> Attribution:
    """The game on all distances and the class's logit; those that are shown decide when to stop."""
    places = [*case.named, len(model.prototypes)]
    alone = settings.shown_alone
    function = distances_and_logit(
        model, case.named if alone else None, class_row(model, case.target, case.versus)
    )
    driving = list(range(len(places))) if alone else places
    # Not checked whether it repeats: the explainer's network is in evaluation mode, and the difference of two
    # logits keeps the rounding of large sums, which in half precision may look like a random function.
    found = play(function, x, settings, players=players, driving=driving, progress=progress, check=False)
    return spread_outputs(found, places, places[-1] + 1) if alone else found
