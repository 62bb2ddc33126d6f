"""Why this class? The explanation of one image."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.contribution import (
    Decomposition,
    class_row,
    decompose,
    find_class,
    paper_scores,
    similarities,
)
from protopfaith.explanation.explainer import Explainer, SourceSide
from protopfaith.explanation.picture import ImageLike, Picture
from protopfaith.explanation.playing import (
    COARSE_BUDGET,
    PlayersLike,
    Settings,
    coarse_players,
    distances_and_logit,
    make_players,
    play,
    players_name,
)
from protopfaith.explanation.protopnet_map import crop_box, protopnet_maps
from protopfaith.explanation.regions import Agreement, RegionValues, agreement, region_values
from protopfaith.network import ProtoPNet, PrototypeSource, duplicate_groups
from protopfaith.shapley import Attribution
from protopfaith.training import Run

Report = Callable[[str, int, int], None]  # what is being done, evaluations done, evaluations expected


@dataclass(frozen=True, eq=False)
class PrototypeEvidence:
    """What one prototype has to do with the decision."""

    prototype: int
    class_index: int
    class_name: str
    distance: float
    similarity: float  # what F reads: -distance, or the log similarity
    weight: float  # in F, to the explained class (or difference of classes)
    paper_score: float  # the paper's Psi_k, with R over the classes' own prototypes
    score: float  # its share in the complete decomposition
    source: PrototypeSource | None
    duplicate_of: int | None  # a prototype of higher rank with the same vector
    duplicate_kind: str  # "", "identical" or "near"
    test: RegionValues
    activation: Tensor  # ProtoPNet's own map on the test image, (H, W)
    box: tuple[int, int, int, int]
    source_side: SourceSide | None


@dataclass(frozen=True, eq=False)
class SecondBaseline:
    """The class map with another baseline, and how far it agrees with the first."""

    baseline: str
    class_map: RegionValues
    class_agreement: Agreement
    prototype_agreement: dict[int, Agreement]


@dataclass(frozen=True, eq=False)
class Explanation:
    """An image, the decision on it, and what it rests on: everything a figure or a report shows."""

    name: str
    pixels: Tensor  # uint8, C x H x W, as the network sees it
    original: Tensor  # uint8, C x H0 x W0, before it was resized
    class_names: tuple[str, ...]
    probabilities: Tensor  # (C,)
    prediction: int
    target: int
    versus: int | None
    decomposition: Decomposition
    runner_up: Decomposition  # against the most probable other class; the same one if that was asked for
    evidence: tuple[PrototypeEvidence, ...]
    class_map: RegionValues
    prototype_values: Tensor  # (P, n): shares in the distances of all prototypes
    method: str
    baseline: str
    evaluations: int
    precision: float
    precision_asked: float | None
    reached: bool
    second: SecondBaseline | None
    coarse: bool
    seconds: float
    network: dict[str, Any]
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The question that is answered."""
        asked = f"Why {self.class_names[self.target]}"
        return f"{asked}?" if self.versus is None else f"{asked} and not {self.class_names[self.versus]}?"

    @property
    def original_size(self) -> tuple[int, int]:
        return self.original.shape[-2], self.original.shape[-1]

    def original_map(self, regions: RegionValues | None = None) -> Tensor:
        """A map of the test image (the class's by default) in the original image's size: (H0, W0)."""
        return (regions or self.class_map).map(self.original_size)

    def save(self, stem: Path | str) -> tuple[Path, Path]:
        """Writes ``stem.json`` and ``stem.npz``."""
        from protopfaith.explanation.saving import save

        return save(self, stem)

    def figure(self, **options: Any) -> Any:
        """The paper's figure; see :func:`protopfaith.explanation.figures.figure`."""
        from protopfaith.explanation.figures import figure

        return figure(self, **options)

    def report(self, path: Path | str) -> Path:
        """Writes one self-contained HTML page."""
        from protopfaith.explanation.report import write_report

        return write_report(self, path)

    def _repr_html_(self) -> str:
        from protopfaith.explanation.notebook import explanation_html

        return explanation_html(self)


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
    autocast: torch.dtype | None = None,
    device: torch.device | str | None = None,
    preprocessing: Preprocessing | None = None,
    images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
    on_coarse: Callable[[Explanation], None] | None = None,
    progress: Report | None = None,
) -> Explanation:
    """Explains the decision of a network on one image.

    Args:
        model: a run, its folder, a network, or an :class:`Explainer` (keeps everything loaded between images).
        image: a path, a Pillow image, a uint8 tensor of any size, or a normalized float tensor.
        players: the side of square windows in pixels, ``"superpixels:60"``, or a label image (H x W, int64).
        precision: relative standard error at which to stop, for the class's prototypes and the class itself.
        budget: evaluations of the network at most (4,096 where neither is given).
        estimator: a name of :data:`protopfaith.shapley.ESTIMATORS`; ``options`` are its own.
        target: the class to explain, by name or number; the predicted one by default.
        versus: another class: "why the target and not this one?".
        baseline: what stands where a region is absent; ``second_baseline`` repeats the game with another one.
        sources: also explain every prototype on its source image.
        duplicate_tolerance: squared distance up to which prototypes count as one (1e-6 times L).
        on_coarse: gets a quick answer on 7 x 7 windows first.
        progress: gets (what is done, evaluations done, evaluations expected).
    """
    settings = Settings(
        players, precision, budget, estimator, baseline, seed, options or {}, batch_size, memory, autocast
    )
    explainer = as_explainer(model, preprocessing=preprocessing, images=images, device=device)
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
    case = _look(model, picture, x, find_class(model, target), find_class(model, versus))
    if sources:  # before any work: without projection there is nothing to show
        for prototype in case.named:
            explainer.source(prototype)
    tolerance = 1e-6 * model.prototypes.shape[1] if duplicate_tolerance is None else duplicate_tolerance
    duplicates = mark_duplicates(model, case.named, tolerance)

    def reporter(stage: str) -> Callable[[int, int], None] | None:
        return None if progress is None else (lambda done, expected: progress(stage, done, expected))

    def played(plan: Settings, stage: str, **more: Any) -> Attribution:
        function = distances_and_logit(model, None, class_row(model, case.target, case.versus))
        driving = [*case.named, len(model.prototypes)]
        # A logit is a small difference of large sums, so rounding alone may look like a random function there; the
        # distances, of which it is made, were checked.
        return play(function, x, plan, driving=driving, progress=reporter(stage), check=False, **more)

    def assembled(result: Attribution, plan: Settings, **more: Any) -> Explanation:
        return _assemble(explainer, case, duplicates, result, plan, time.perf_counter() - start, **more)

    if coarse:
        quick = replace(settings, precision=None, budget=COARSE_BUDGET, estimator="default", options={})
        result = played(quick, "coarse answer", players=coarse_players(x))
        yield assembled(result, quick, sides={}, second=None, coarse=True)
    regions = make_players(settings.players, x)
    result = played(settings, "test image", players=regions)
    second = None
    if second_baseline is not None:
        other = played(replace(settings, baseline=second_baseline), "second baseline", players=regions)
        second = _compare(model, case, result, other)
    sides = explainer.explain_sources(case.named, settings, reporter("source images")) if sources else {}
    yield assembled(result, settings, sides=sides, second=second, coarse=False)


@dataclass(frozen=True, eq=False)
class _Case:
    """The network's view of one image, before any game."""

    picture: Picture
    distances: Tensor  # (P,)
    activations: Tensor  # (P, H, W)
    logits: Tensor  # (C,)
    target: int
    versus: int | None
    decomposition: Decomposition
    named: list[int]  # prototypes to show, ranked: the target's, then those of the class it is compared with
    paper: dict[int, float]


@torch.no_grad()
def _look(model: ProtoPNet, picture: Picture, x: Tensor, target: int | None, versus: int | None) -> _Case:
    maps = model.distance_maps(x[None])
    distances = maps.amin(dim=(-2, -1))
    if bool(((model.distances(x[None]) - distances).abs() > 1e-3 * distances.abs().max()).any()):
        raise ProtoPFaithError(
            "The network answers differently when asked twice about one image; switch off whatever is random in "
            "its encoder before explaining it."
        )
    logits = model.logits(distances)[0].double().cpu()
    if not bool(torch.isfinite(logits).all()):
        raise ProtoPFaithError(f"The network's output on {picture.name} is not finite; check its weights.")
    if target is None:
        target = int(logits.argmax())
    decomposition = decompose(model, distances[0], target, versus)
    owners = model.prototype_classes.cpu()
    paper: dict[int, float] = {}
    named: list[int] = []
    for one in [target] if versus is None else [target, versus]:
        scores = paper_scores(model, distances[0], one)
        members = torch.where(owners == one)[0]
        ranked = members[scores.argsort(descending=True, stable=True)].tolist()
        paper |= dict(zip(members.tolist(), scores.tolist(), strict=True))
        named += ranked
    activations = protopnet_maps(model, maps[0][named], x.shape[-2:]).cpu()
    return _Case(
        picture, distances[0].double().cpu(), activations, logits, target, versus, decomposition, named, paper
    )


def mark_duplicates(
    model: ProtoPNet, ranked: Sequence[int], tolerance: float
) -> dict[int, tuple[int | None, str]]:
    """For each prototype one of higher rank that it repeats (or None), and whether identically or nearly."""
    classes, vectors = model.prototype_classes.cpu(), model.prototypes.detach().cpu()
    marks: dict[int, tuple[int | None, str]] = dict.fromkeys(ranked, (None, ""))
    for kind, limit in (("near", tolerance), ("identical", 0.0)):
        for group in duplicate_groups(vectors, classes, limit):
            shown = [prototype for prototype in ranked if prototype in group]
            for prototype in shown[1:]:
                marks[prototype] = (shown[0], kind)
    return marks


def _assemble(
    explainer: Explainer,
    case: _Case,
    duplicates: dict[int, tuple[int | None, str]],
    result: Attribution,
    settings: Settings,
    seconds: float,
    *,
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
    picture = case.picture
    return Explanation(
        name=picture.name,
        pixels=picture.pixels,
        original=_pixels(picture),
        class_names=model.class_names,
        probabilities=case.logits.softmax(0),
        prediction=int(case.logits.argmax()),
        target=case.target,
        versus=case.versus,
        decomposition=case.decomposition,
        runner_up=decompose(model, case.distances, case.target, _rival(case)),
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
        },
    )


def _rival(case: _Case) -> int:
    """The class to compare with: the one asked for, or the most probable other one."""
    if case.versus is not None:
        return case.versus
    ranked = case.logits.argsort(descending=True).tolist()
    return ranked[1] if ranked[0] == case.target else ranked[0]


def class_map(model: ProtoPNet, result: Attribution, row: Tensor) -> RegionValues:
    """The regions' shares in the class's logit, from a game on all distances and that logit (its last output).

    Values are the weighted sum of all prototypes' values, by linearity; standard errors are those of the logit
    itself, since the prototypes' errors go together. With log similarity the logit is not linear in the
    distances: there its own game is all there is.
    """
    own = region_values(result, len(result.values) - 1, 1)
    if model.similarity != "linear":
        return own
    return replace(own, values=weighted_values(model, result.values[:-1], row))


def weighted_values(model: ProtoPNet, prototype_values: Tensor, row: Tensor) -> Tensor:
    """Shares (P, n) in the distances, weighted by a row of F (P,): shares (n,) in the logit."""
    if model.similarity != "linear":
        raise ProtoPFaithError(
            f"With {model.similarity} similarity the logit is no weighted sum of distances, so weighted distance maps "
            "would not be true; use the class map, whose game is played on the logit."
        )
    return -(row.to(prototype_values) @ prototype_values)


def _compare(model: ProtoPNet, case: _Case, first: Attribution, other: Attribution) -> SecondBaseline:
    row = class_row(model, case.target, case.versus).cpu().double()
    maps = [class_map(model, result, row) for result in (first, other)]
    return SecondBaseline(
        other.baseline,
        maps[1],
        agreement(*maps),
        {p: agreement(region_values(first, p, -1), region_values(other, p, -1)) for p in case.named},
    )


def _pixels(picture: Picture) -> Tensor:
    from torchvision.transforms.v2.functional import pil_to_tensor

    return pil_to_tensor(picture.original)
