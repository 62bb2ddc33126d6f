"""The result: an image, the decision on it, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from protopfaith.arguments import instance
from protopfaith.explanation.decomposition import Closeness, Decomposition
from protopfaith.explanation.familiarity import is_unfamiliar
from protopfaith.explanation.findings import Finding
from protopfaith.explanation.question import about_finding, question
from protopfaith.explanation.regions import Agreement, RegionValues
from protopfaith.explanation.sources import SourcePart, SourceSide
from protopfaith.network import PrototypeSource, Route


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
        activation: the network's own map on the test image, (H, W)
        box: around what that map has above its 95th percentile: left, top, right, bottom
        source_side: the prototype on its source image
        source_part: the part of the source image that it is, where no game was played on that

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
    source_part: SourcePart | None = None

    @property
    def on_source(self) -> SourceSide | SourcePart | None:
        """The prototype on its source image, as much of it as there is."""
        return self.source_side or self.source_part

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
        output: what the class map adds up to, one of `protopfaith.specs.OUTPUTS`
        other_maps: of the other outputs, by name
        rival: the class asked for as `versus`, or the most probable other one
        temperature: what logits were divided by (of a finding: before its offset was added); None: not
            calibrated
        empty_probabilities: (C,): of the image without any region
        closeness: of the target; None where the average training image is unknown
        rival_closeness: of the rival, in the same quantity as if it were explained
        nearest_distance: how far the image is from what the network knows: by all of its distances, in
            standard deviations around training images of the predicted class, or, in runs of earlier
            versions, to the nearest prototype of that class
        usual_distance: 99% of the validation images are nearer than this
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
        """Whether the image looks like nothing the network knows: it is farther from what is usual than 99%
        of the validation images are; None where that was not measured."""
        return is_unfamiliar(self.nearest_distance, self.usual_distance)

    @property
    def ranked(self) -> list[PrototypeEvidence]:
        """Prototypes as the bars have them: those of the class first, and the most evidence first."""
        order = list(self._shares())
        if self.findings or not all(one.prototype in order for one in self.evidence):
            return list(self.evidence)
        return sorted(self.evidence, key=lambda one: order.index(one.prototype))

    def share_of(self, prototype: int) -> float | None:
        """What a prototype adds compared with training images on average; None where that is not known.

        Args:
            prototype: its number
        """
        return self._shares().get(prototype)

    def _shares(self) -> dict[int, float]:
        """Of the class's prototypes and its rival's, the largest of each first."""
        shares: dict[int, float] = {}
        for found in (self.closeness, self.rival_closeness):
            if found is not None:
                pairs = zip(found.prototypes.tolist(), found.shares.tolist(), strict=True)
                shares |= dict(sorted(pairs, key=lambda pair: -pair[1]))
        return shares

    @property
    def original_size(self) -> tuple[int, int]:
        return self.original.shape[-2], self.original.shape[-1]

    def original_map(self, regions: RegionValues | None = None) -> Tensor:
        """A map of the test image in the original image's size: (H0, W0).

        Args:
            regions: whose map; the class's by default
        """
        if regions is not None:
            instance(regions, RegionValues, "What is mapped", "RegionValues")
        return (self.class_map if regions is None else regions).map(self.original_size)

    def save(self, stem: Path | str) -> tuple[Path, Path]:
        """Writes `stem.json` and `stem.npz`.

        Args:
            stem: the path, with or without `.json`; files that are there are replaced
        """
        from protopfaith.explanation.saving import save

        return save(self, stem)

    def figure(self, path: Path | str | None = None, **options: Any) -> Any:
        """The paper's figure; see `protopfaith.show.figures.figure`.

        Args:
            path: where to write it, as .png, .pdf or .svg; nowhere by default
            options: its other keywords: `most` prototypes, `columns`, `dpi`, `hatching`
        """
        from protopfaith.show.figures import figure, refuse_pictures

        if path is not None:
            refuse_pictures(path)
        return figure(self, path=path, **options)

    def report(self, path: Path | str) -> Path:
        """Writes one self-contained HTML page and returns its path.

        Args:
            path: of the page; one that is there is replaced
        """
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
