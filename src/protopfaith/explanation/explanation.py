"""The result: an image, the decision on it, and what it rests on; and how it is put together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.explanation.decision import Decision, finding_number
from protopfaith.explanation.decomposition import (
    Closeness,
    Decomposition,
    closeness,
    decompose,
    output_row,
    similarities,
)
from protopfaith.explanation.familiarity import familiarity, is_unfamiliar
from protopfaith.explanation.findings import Finding, findings_of
from protopfaith.explanation.game import ROUNDING, output_names
from protopfaith.explanation.protopnet_map import crop_box, own_map_name
from protopfaith.explanation.question import about_finding, question
from protopfaith.explanation.regions import Agreement, RegionValues, agreement, class_map, region_values
from protopfaith.explanation.settings import Settings, players_name
from protopfaith.explanation.sources import SourceSide
from protopfaith.network import PrototypeNetwork, PrototypeSource, Route, class_of, probabilities
from protopfaith.shapley import Attribution
from protopfaith.training.reference import Reference


@dataclass(frozen=True, eq=False)
class PrototypeEvidence:
    """What one prototype has to do with the decision.

    Args:
        prototype: its index
        class_index: of its class; -1 where it belongs to none
        class_name: of its class; empty where it belongs to none
        distance: of the image to it
        similarity: what outputs are made of: -distance, the log similarity, or a family's own
        weight: in F, to the explained class (or difference of classes); NaN where outputs are no sums
        paper_score: the paper's Psi_k, with R over the classes' own prototypes; NaN where outputs are no sums
        score: its share in the complete decomposition; of a node of a tree the log probability of its turn
        source: the training image that it is a part of, if it was projected
        duplicate_of: a prototype of higher rank with the same vector
        duplicate_kind: "", "identical" or "near"
        test: the regions' shares in its distance
        activation: PrototypeNetwork's own map on the test image, (H, W)
        box: around what that map has above its 95th percentile: left, top, right, bottom
        source_side: the prototype on its source image

    >>> from protopfaith.explanation import Explainer
    >>> found = Explainer("runs/birds").explain("bird.png", players=16, budget=64)
    >>> best = found.evidence[0]
    >>> best.class_name == found.class_names[found.target], len(best.source_side.regions.values)
    (True, 4)
    """

    prototype: int
    class_index: int
    class_name: str
    distance: float
    similarity: float
    weight: float
    paper_score: float
    score: float
    source: PrototypeSource | None
    duplicate_of: int | None
    duplicate_kind: str
    test: RegionValues
    activation: Tensor
    box: tuple[int, int, int, int]
    source_side: SourceSide | None

    def __repr__(self) -> str:
        return (
            f"PrototypeEvidence(prototype={self.prototype}, {self.class_name!r}, "
            f"distance={self.distance:.4g}, score={self.score:.4g})"
        )


@dataclass(frozen=True, eq=False)
class SecondBaseline:
    """The class map with another baseline, and how far it agrees with the first.

    Args:
        baseline: its name
        class_map: with this baseline
        class_agreement: of both maps of the class
        prototype_agreement: of both maps of each prototype, by its index

    >>> from protopfaith.explanation import Explainer
    >>> quick = {"players": 16, "budget": 64, "sources": False}
    >>> found = Explainer("runs/birds").explain("bird.png", second_baseline="blur:4", **quick)
    >>> found.second.baseline
    'blur (sigma 4)'
    """

    baseline: str
    class_map: RegionValues
    class_agreement: Agreement
    prototype_agreement: dict[int, Agreement]

    def __repr__(self) -> str:
        return f"SecondBaseline({self.baseline!r}, correlation={self.class_agreement.correlation:.3f})"


@dataclass(frozen=True, eq=False)
class Explanation:
    """An image, the decision on it, and what it rests on: everything a figure or a report shows.

    Args:
        name: of the image, for people
        pixels: uint8, C x H x W, as the network sees it
        original: uint8, C x H0 x W0, before it was resized
        class_names: of the network
        probabilities: of all classes, (C,)
        prediction: the most probable class
        target: the class that is explained
        versus: the class that it is compared with, if that was asked for
        decomposition: the decision as a sum over prototypes; None where it is none
        runner_up: against the most probable other class; the same one if that was asked for
        evidence: prototypes, those that matter most first
        class_map: the regions' shares in what is explained
        prototype_values: (P, n): shares in all distances; NaN where not asked for (moment_path)
        method: the estimator
        baseline: what stood for absent regions
        evaluations: of the game on this image
        precision: relative error that was reached
        precision_asked: relative error that was asked for
        reached: whether it was
        second: with another baseline, if that was asked for
        coarse: whether it is the first, quick answer
        seconds: that it took
        network: which network: weights, encoder, size
        settings: how it was computed
        notes: sentences about what to keep in mind
        output: what the class map adds up to, one of `settings.OUTPUTS`
        other_maps: of the other outputs, by name
        rival: the class asked for as `versus`, or the most probable other one
        temperature: what logits were divided by (of a finding: before its offset was added); None: not
            calibrated
        empty_probabilities: (C,): of the image without any region
        closeness: of the target; None where the average training image is unknown
        rival_closeness: of the rival, in the same quantity as if it were explained
        nearest_distance: to the nearest prototype of the predicted class
        usual_distance: 99% of that class's validation images are nearer than this
        evaluations_in_all: with those of a second baseline and of new source images
        path: of the image, as it was given; empty where it was no file
        true_class: where it is known
        mask: bool, H x W as the network sees it: where the object is, if known
        route: through a tree, where the network is one
        findings: what is said of each, where the network decides on several; else none

    >>> from protopfaith.network import ProtoPNet
    >>> import torch
    >>> from protopfaith.explanation import Explainer
    >>> explainer = Explainer(ProtoPNet("small", ["cat", "dog"], 1, 8).eval())
    >>> found = explainer.explain(torch.zeros(3, 32, 32), players=16, sources=False, name="a pet")
    >>> found.original_map().shape, len(found.evidence)
    (torch.Size([32, 32]), 1)
    """

    name: str
    pixels: Tensor
    original: Tensor
    class_names: tuple[str, ...]
    probabilities: Tensor
    prediction: int
    target: int
    versus: int | None
    decomposition: Decomposition | None
    runner_up: Decomposition | None
    evidence: tuple[PrototypeEvidence, ...]
    class_map: RegionValues
    prototype_values: Tensor
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
    # Defaults stand for what explanations of earlier versions do not have.
    output: str = "logit"
    other_maps: dict[str, RegionValues] = field(default_factory=dict)
    rival: int | None = None
    temperature: float | None = None
    empty_probabilities: Tensor | None = None
    closeness: Closeness | None = None
    rival_closeness: Closeness | None = None
    nearest_distance: float | None = None
    usual_distance: float | None = None
    evaluations_in_all: int | None = None
    path: str = ""
    true_class: int | None = None
    mask: Tensor | None = None
    route: Route | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def title(self) -> str:
        """The question that is answered, or what is said of a finding."""
        strange = bool(self.is_unfamiliar)
        if self.findings:
            return about_finding(self.findings[self.target], unfamiliar=strange)
        names, p = self.class_names, self.probabilities
        return question(names, p, self.target, self.versus, unfamiliar=strange)

    @property
    def calibrated(self) -> bool:
        """Whether probabilities are those of a temperature fitted on validation images."""
        return self.temperature is not None

    @property
    def empty_prediction(self) -> int | None:
        """The class of the image without any region, which every map is relative to."""
        return None if self.empty_probabilities is None else int(self.empty_probabilities.argmax())

    @property
    def is_unfamiliar(self) -> bool | None:
        """Whether the nearest prototype of the predicted class is farther than 99% of that class's validation
        images are from theirs; None where that was not measured."""
        return is_unfamiliar(self.nearest_distance, self.usual_distance)

    @property
    def original_size(self) -> tuple[int, int]:
        return self.original.shape[-2], self.original.shape[-1]

    def original_map(self, regions: RegionValues | None = None) -> Tensor:
        """A map of the test image (the class's by default) in the original image's size: (H0, W0)."""
        return (regions or self.class_map).map(self.original_size)

    def save(self, stem: Path | str) -> tuple[Path, Path]:
        """Writes `stem.json` and `stem.npz`."""
        from protopfaith.explanation.saving import save

        return save(self, stem)

    def figure(self, **options: Any) -> Any:
        """The paper's figure; see `protopfaith.show.figures.figure`."""
        from protopfaith.show.figures import figure

        return figure(self, **options)

    def report(self, path: Path | str) -> Path:
        """Writes one self-contained HTML page."""
        from protopfaith.show.report import write_report

        return write_report(self, path)

    def __repr__(self) -> str:
        return (
            f"Explanation({self.name!r}, {self.title!r}, p={float(self.probabilities[self.target]):.3f}, "
            f"{len(self.class_map.values)} regions, {self.evaluations:,} evaluations, "
            f"precision={self.precision:.2g})"
        )

    def _repr_html_(self) -> str:
        from protopfaith.show.notebook import explanation_html

        return explanation_html(self)


def assemble(
    model: PrototypeNetwork,
    decision: Decision,
    result: Attribution,
    settings: Settings,
    *,
    weights_hash: str,
    reference: Reference | None,
    sides: dict[int, SourceSide],
    second: Attribution | None,
    coarse: bool,
    seconds: float,
    source_evaluations: int = 0,
) -> Explanation:
    """Puts an explanation together.

    Args:
        model: the network that decided
        decision: what it said about the image
        result: the game on the image, see `protopfaith.explanation.game.play_decision`
        settings: how it was played
        weights_hash: of the network
        reference: what it is compared with, where known
        sides: prototypes on their source images, as far as wanted
        second: the game with another baseline
        coarse: whether this is the first, quick answer
        seconds: what it took
        source_evaluations: of the network on source images that were not known yet
    """
    from torchvision.transforms.v2.functional import pil_to_tensor  # takes as long to import as torch

    maps = _maps(model, decision, settings, result)
    numbers = {name: finding_number(name) for name in maps}
    of_findings = {number: maps.pop(name) for name, number in numbers.items() if number is not None}
    several = decision.outcome == "several"
    near = familiarity(model, decision, reference)
    return Explanation(
        name=decision.picture.name,
        pixels=decision.picture.pixels,
        original=pil_to_tensor(decision.picture.original),
        class_names=model.class_names,
        probabilities=decision.probabilities,
        prediction=int(decision.logits.argmax()),
        target=decision.target,
        versus=decision.versus,
        decomposition=decision.decomposition,
        runner_up=_against_rival(model, decision),
        evidence=_evidence(model, decision, result, sides),
        class_map=maps.pop(decision.output),
        prototype_values=result.values[: len(model.prototypes)],
        method=result.method,
        baseline=result.baseline,
        evaluations=result.evaluations,
        precision=result.precision,
        precision_asked=settings.precision,
        reached=result.reached,
        second=None if second is None else _compared(model, decision, settings, result, second),
        coarse=coarse,
        seconds=seconds,
        network=_network_facts(model, weights_hash),
        settings=_settings_facts(settings, result),
        notes=(*_notes(settings, sides), *_about_hidden(reference)),
        output=decision.output,
        other_maps=maps,
        rival=None if several else decision.rival,
        temperature=decision.temperature,
        empty_probabilities=probabilities(decision.empty_logits, decision.outcome),
        closeness=_closeness(model, decision, reference, decision.target, decision.rival),
        rival_closeness=None
        if several
        else _closeness(model, decision, reference, decision.rival, decision.target),
        nearest_distance=near.nearest,
        usual_distance=near.usual,
        evaluations_in_all=result.evaluations + source_evaluations + (second.evaluations if second else 0),
        path=decision.picture.path,
        route=decision.route,
        findings=findings_of(model, decision, reference, of_findings),
    )


def _against_rival(model: PrototypeNetwork, decision: Decision) -> Decomposition | None:
    if not decision.adds_up:
        return None
    if decision.outcome == "several":  # its presence against its absence: the same log odds
        return decision.decomposition
    return decompose(
        model, decision.distances, decision.target, decision.rival, temperature=decision.calibrator
    )


def _maps(
    model: PrototypeNetwork, decision: Decision, settings: Settings, result: Attribution
) -> dict[str, RegionValues]:
    """The maps of everything that could be explained, by name."""
    first = len(model.prototypes)
    return {
        name: class_map(
            model,
            result,
            first + place,
            decision.row(model, name) if decision.adds_up and name != "log_probability" else None,
        )
        for place, name in enumerate(output_names(decision, settings))
    }


def _closeness(
    model: PrototypeNetwork, decision: Decision, reference: Reference | None, target: int, versus: int
) -> Closeness | None:
    if reference is None or not decision.adds_up:
        return None
    row = output_row(model, decision.output, target, versus) / (decision.temperature or 1.0)
    found = closeness(model, decision.distances, row, reference.mean_similarities, target)
    return replace(found, average=found.average + decision.calibrator.offset(target))


def _evidence(
    model: PrototypeNetwork, decision: Decision, result: Attribution, sides: dict[int, SourceSide]
) -> tuple[PrototypeEvidence, ...]:
    """One for each prototype that is shown."""
    scores, similarity = _scores(decision), similarities(model, decision.distances)
    row = decision.row(model) if decision.adds_up else torch.full_like(decision.distances, torch.nan)
    evidence = []
    for prototype, activation in zip(decision.named, decision.activations, strict=True):
        evidence.append(
            PrototypeEvidence(
                prototype,
                int(model.prototype_classes[prototype]),
                class_of(model, prototype),
                distance=float(decision.distances[prototype]),
                similarity=float(similarity[prototype]),
                weight=float(row[prototype]),
                paper_score=decision.paper[prototype],
                score=scores.get(prototype, math.nan),
                source=model.sources[prototype],
                duplicate_of=decision.duplicates[prototype][0],
                duplicate_kind=decision.duplicates[prototype][1],
                test=region_values(result, prototype, -1),
                activation=activation,
                box=crop_box(activation),
                source_side=sides.get(prototype),
            )
        )
    return tuple(evidence)


def _scores(decision: Decision) -> dict[int, float]:
    """What each prototype adds to the log probability, of the class or of the leaf that is reached."""
    if decision.route is not None:
        return {turn.prototype: turn.log_probability for turn in decision.route.turns}
    complete = decision.decomposition
    if complete is None:
        return {}
    return dict(zip(complete.prototypes.tolist(), complete.scores.tolist(), strict=True))


def _compared(
    model: PrototypeNetwork, decision: Decision, settings: Settings, first: Attribution, second: Attribution
) -> SecondBaseline:
    maps = [_maps(model, decision, settings, result)[decision.output] for result in (first, second)]
    return SecondBaseline(
        second.baseline,
        maps[1],
        agreement(*maps),
        {p: agreement(region_values(first, p, -1), region_values(second, p, -1)) for p in decision.named},
    )


def _network_facts(model: PrototypeNetwork, weights_hash: str) -> dict[str, Any]:
    return {
        "encoder": model.encoder_name,
        "similarity": model.similarity,
        "activation": model.activation,
        "prototypes": len(model.prototypes),
        "weights_sha256": weights_hash,
        "own_map": own_map_name(model),
    }


def _settings_facts(settings: Settings, result: Attribution) -> dict[str, Any]:
    return {
        "players": result.players.description,
        "players_asked": players_name(settings.players),
        "budget": settings.budget,
        "source_budget": settings.source_budget,
        "seed": settings.seed,
        "output": settings.output,
        "options": dict(settings.options),
        "autocast": None if settings.autocast is None else str(settings.autocast).removeprefix("torch."),
        "rounding": result.options.get(ROUNDING),
    }


def _about_hidden(reference: Reference | None) -> tuple[str, ...]:
    sentence = "" if reference is None else reference.about_hidden()
    return (sentence,) if sentence else ()


def _notes(settings: Settings, sides: dict[int, SourceSide]) -> tuple[str, ...]:
    if sides and not isinstance(settings.players, int | str):
        size = next(iter(sides.values())).regions.players.description
        return (f"The regions were drawn on the test image; source images are divided into {size} instead.",)
    return ()
