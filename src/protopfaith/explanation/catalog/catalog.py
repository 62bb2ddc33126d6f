"""What is this prototype? The explanation of a whole network: all prototypes of all classes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protopfaith.annotations import check_arguments
from protopfaith.arguments import whole_number
from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.catalog.distributed import explain_sources
from protopfaith.explanation.catalog.nearest import Patch, Survey, survey
from protopfaith.explanation.decision import mark_duplicates
from protopfaith.explanation.explainer import Explainable, Explainer, as_explainer
from protopfaith.explanation.game import check_game
from protopfaith.explanation.picture import require_preprocessing
from protopfaith.explanation.settings import Settings
from protopfaith.explanation.sources import SourceSide
from protopfaith.listening import STAGES, check_listener
from protopfaith.network import NO_CLASS, PrototypeNetwork, PrototypeSource, class_of, outcome_of
from protopfaith.progress import Report
from protopfaith.writing import atomic

MOST_PATCHES = 1_000
MOSTLY = 0.5  # a class rests on background when less than this share of its evidence lies on the object


@dataclass(frozen=True, eq=False)
class PrototypePortrait:
    """One prototype: where it comes from, what it sees there, what else looks like it.

    Args:
        prototype: its index
        class_index: of its class; -1 where it belongs to none
        class_name: of its class; empty where it belongs to none
        weight: in F, to its own class; NaN where outputs are no sums
        source: the training image and the place in it
        source_side: what it sees there
        nearest: places in training images that are most like it
        duplicate_of: another one with the same vector
        duplicate_kind: "", "identical" or "near"
        uses: images, other than its source, for which it contributes most to the predicted class
        object_share: of its positive evidence on the source image; NaN where no mask or box is known
        object_area: share of the image that the object takes: what a blind map would have

    >>> portrait = explain_prototypes("runs/birds", players=16, budget=64).prototypes[0]
    >>> portrait.class_name, len(portrait.nearest)
    ('Marsh Orrin', 5)
    """

    prototype: int
    class_index: int
    class_name: str
    weight: float
    source: PrototypeSource
    source_side: SourceSide
    nearest: tuple[Patch, ...]
    duplicate_of: int | None
    duplicate_kind: str
    uses: int
    object_share: float
    object_area: float

    def __repr__(self) -> str:
        return f"PrototypePortrait(prototype={self.prototype}, {self.class_name!r}, {self.uses} uses)"


@dataclass(frozen=True, eq=False)
class ClassPortrait:
    """One class: how many of its prototypes differ, and whether they look at the object.

    Args:
        name: of the class; empty for the prototypes of none
        distinct: how many of its prototypes differ
        prototypes: how many it has
        unused: how many no image uses
        object_share: of the prototypes' positive evidence, on the object; NaN where it is not known
        object_area: share of the image that the object takes
        rests_on_background: whether less than half of its evidence lies on the object

    >>> portrait = explain_prototypes("runs/birds", players=16, budget=64).classes[0]
    >>> portrait.name, portrait.prototypes
    ('Marsh Orrin', 2)
    """

    name: str
    distinct: int
    prototypes: int
    unused: int
    object_share: float
    object_area: float
    rests_on_background: bool


@dataclass(frozen=True, eq=False)
class Catalog:
    """All prototypes of a network.

    Args:
        prototypes: one portrait each
        classes: one portrait each
        latent_size: rows and columns of the latent map
        images: the training images that patches refer to
        settings: how it was computed
        weights_hash: which network it is about
        remarks: a sentence about some prototypes, for the page

    >>> catalog = explain_prototypes("runs/birds", players=16, budget=64)
    >>> len(catalog.prototypes), len(catalog.classes)
    (16, 8)
    """

    prototypes: tuple[PrototypePortrait, ...]
    classes: tuple[ClassPortrait, ...]
    latent_size: tuple[int, int]
    images: ImageSet
    settings: Settings
    weights_hash: str
    remarks: Mapping[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Catalog({len(self.prototypes)} prototypes of {len(self.classes)} classes, "
            f"{len(self.duplicates)} duplicates, {len(self.unused)} unused)"
        )

    @property
    def duplicates(self) -> list[int]:
        return [one.prototype for one in self.prototypes if one.duplicate_of is not None]

    @property
    def unused(self) -> list[int]:
        """Prototypes that contribute most for no image but their own source."""
        return [one.prototype for one in self.prototypes if one.uses == 0]

    @property
    def on_background(self) -> list[str]:
        return [one.name for one in self.classes if one.rests_on_background]

    def save(self, folder: Path | str) -> Path:
        """Writes `prototypes.html`, `prototypes.json` and `prototypes.npz`; returns the page's path.

        Args:
            folder: where to write; made where it is not there
        """
        from protopfaith.show.catalog import render_catalog

        folder = Path(folder)
        with atomic(folder / "prototypes.json") as partial:
            partial.write_text(json.dumps(self.to_dict(), indent=1, allow_nan=False), encoding="utf-8")
        arrays: dict[str, Any] = {}
        for one in self.prototypes:
            regions = one.source_side.regions
            arrays[f"{one.prototype}.values"] = regions.values.numpy()
            arrays[f"{one.prototype}.standard_errors"] = regions.standard_errors.numpy()
            arrays[f"{one.prototype}.labels"] = regions.players.labels.numpy()
        with atomic(folder / "prototypes.npz") as partial, partial.open("wb") as file:
            np.savez_compressed(file, **arrays)
        with atomic(folder / "prototypes.html") as partial:
            partial.write_text(render_catalog(self), encoding="utf-8")
        return folder / "prototypes.html"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; unknown shares and precisions are None."""
        return {
            "weights_sha256": self.weights_hash,
            "classes": [_plain(asdict(one)) for one in self.classes],
            "prototypes": [
                {
                    **_plain({k: getattr(one, k) for k in _FACTS}),
                    "source": one.source.to_dict(),
                    "nearest": [asdict(patch) for patch in one.nearest],
                    "completeness_gap": one.source_side.regions.gap,
                    "precision": _precision(one.source_side),
                    "evaluations": one.source_side.evaluations,
                }
                for one in self.prototypes
            ],
        }


_FACTS = (
    "prototype",
    "class_index",
    "class_name",
    "weight",
    "duplicate_of",
    "duplicate_kind",
    "uses",
    "object_share",
    "object_area",
)


def explain_prototypes(
    model: Explainable | Explainer,
    *,
    settings: Settings | None = None,
    nearest: int = 5,
    survey_batch: int = 64,
    preprocessing: Preprocessing | None = None,
    images: ImageData | ImageSet | Sequence[ImageSet] | None = None,
    device: torch.device | str | None = None,
    progress: Report | None = None,
    ray: str | None = None,
    **keywords: Any,
) -> Catalog:
    """Every prototype with its source image and attribution, its nearest training patches, duplicates,
    prototypes that no image uses, and classes that rest on background.

    What is computed on source images goes to the run's cache, so a second call, and later explanations of
    single images with the same settings, find it there.

    Args:
        model: a run, its folder, a network, or an `Explainer`.
        settings: how to compute; `keywords` are fields of it.
        nearest: training patches to show for each prototype.
        survey_batch: training images that go through the network at once to find the nearest patches.
        preprocessing: how images are prepared for a network that comes without a run.
        images: the training images of such a network.
        device: where to compute.
        progress: gets ("prototypes", how many are done, how many there are).
        ray: `"local"`, or the address of a Ray cluster, whose workers explain sources into the run's cache.
        keywords: fields of `Settings`, in the place of those of `settings`.

    >>> from tempfile import mkdtemp
    >>> explain_prototypes("runs/birds", players=16, budget=64).save(mkdtemp()).name
    'prototypes.html'
    """
    check_arguments(explain_prototypes, locals())
    check_listener(progress, STAGES)
    explainer = as_explainer(model, preprocessing=preprocessing, images=images, device=device)
    whole_number(nearest, "The number of nearest patches", least=1, most=MOST_PATCHES)
    whole_number(survey_batch, "The batch of the survey", least=1, most=1_000_000)
    training = _training_images(explainer)
    settings = Settings.of(settings, **keywords).on(explainer.device, explainer.size)
    every = list(range(len(explainer.model.prototypes)))
    check_game(settings, explainer.blank())  # before the work, not after
    explainer.sources.check(every)
    if ray is not None:
        explain_sources(explainer, settings=settings, ray=ray, progress=progress)
    found = survey(
        explainer.model,
        training,
        require_preprocessing(explainer.preprocessing),
        nearest=nearest,
        batch_size=survey_batch,
    )
    sides = _source_sides(explainer, every, settings, progress)
    duplicates = mark_duplicates(explainer.model, every, settings.duplicate_tolerance)
    portraits = tuple(_portrait(explainer, p, sides[p], found, duplicates[p]) for p in every)
    several = outcome_of(explainer.model) == "several"
    classes = tuple(_class(name, portraits, several) for name in _owners(explainer.model))
    return Catalog(portraits, classes, found.latent_size, training, settings, explainer.weights_hash)


def _training_images(explainer: Explainer) -> ImageSet:
    if explainer.images is None or explainer.preprocessing is None:
        raise ProtoPFaithError(
            "The network's training images are not known, which its prototypes are compared with; convert it "
            "with --root, give the folder of a run that was trained on them, or images=... and "
            "preprocessing=... in Python."
        )
    return explainer.images.sets[0]


def _source_sides(
    explainer: Explainer, prototypes: Sequence[int], settings: Settings, progress: Report | None
) -> dict[int, SourceSide]:
    sides: dict[int, SourceSide] = {}
    for prototype in prototypes:
        if progress is not None:
            progress("prototypes", prototype, len(prototypes))
        sides |= explainer.sources.explain([prototype], settings)
    if progress is not None:
        progress("prototypes", len(prototypes), len(prototypes))
    return sides


def _portrait(
    explainer: Explainer,
    prototype: int,
    side: SourceSide,
    found: Survey,
    duplicate: tuple[int | None, str],
) -> PrototypePortrait:
    network = explainer.model
    owner, weights = int(network.prototype_classes[prototype]), network.readout()
    share, area = object_shares(explainer, prototype, side)
    return PrototypePortrait(
        prototype,
        owner,
        class_of(network, prototype),
        weight=math.nan if weights is None or owner < 0 else float(weights.detach()[owner, prototype]),
        source=explainer.sources.source(prototype),
        source_side=side,
        nearest=found.nearest[prototype],
        duplicate_of=duplicate[0],
        duplicate_kind=duplicate[1],
        uses=int(found.uses[prototype]),
        object_share=share,
        object_area=area,
    )


def object_shares(explainer: Explainer, prototype: int, side: SourceSide) -> tuple[float, float]:
    """The share of the positive evidence on the object in the source image, and the object's share of the
    image."""
    images, index = explainer.sources.find(prototype)
    mask = images.foreground(index)
    if mask is None:
        return math.nan, math.nan
    return side.regions.share_inside(mask), float(mask.double().mean())


def _owners(network: PrototypeNetwork) -> list[str]:
    """The names of the classes that have prototypes, in their order; an empty one for those of none."""
    labels = set(network.prototype_classes.tolist())
    names = [name for label, name in enumerate(network.class_names) if label in labels]
    return [*names, ""] if NO_CLASS in labels else names


def _class(name: str, portraits: Sequence[PrototypePortrait], several: bool) -> ClassPortrait:
    """A class; of a finding, prototypes that stand for its absence have no object to lie on."""
    members = [one for one in portraits if one.class_name == name]
    there = [one for one in members if not (several and one.weight < 0)]
    shares = [one.object_share for one in there if math.isfinite(one.object_share)]
    areas = [one.object_area for one in there if math.isfinite(one.object_area)]
    share = sum(shares) / len(shares) if shares else math.nan
    return ClassPortrait(
        name,
        distinct=sum(one.duplicate_of is None for one in members),
        prototypes=len(members),
        unused=sum(one.uses == 0 for one in members),
        object_share=share,
        object_area=sum(areas) / len(areas) if areas else math.nan,
        rests_on_background=bool(shares) and share < MOSTLY,
    )


def _precision(side: SourceSide) -> float | None:
    """Relative to the true values; None where the estimator knows no standard errors, whatever it calls its
    precision."""
    return side.precision if side.regions.errors_known and math.isfinite(side.precision) else None


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}
