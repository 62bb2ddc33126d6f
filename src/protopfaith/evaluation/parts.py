"""Which parts of the object prototypes sit on, by our maps and by ProtoPNet's, on images of their class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import finite_number, seed_number, whole_number
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import EXPLAINERS, Options
from protopfaith.evaluation.metrics.parts import (
    BOX,
    OFTEN,
    consistent,
    coverage,
    main_parts,
    mask_point,
    nearest_part,
    part_frequencies,
    part_kinds,
    part_points,
    parts_in_box,
    peak,
    stable,
)
from protopfaith.evaluation.parts_results import PartScores, PartsEvaluation, PrototypeParts
from protopfaith.listening import STAGES, check_listener
from protopfaith.network import PatchNetwork, outcome_of, weights_of
from protopfaith.progress import Report
from protopfaith.shapley import Players
from protopfaith.training.reference import weights_hash

NOISE = 0.2
"""Standard deviation of the noise on normalized images, as Huang et al. take it."""
DEFAULT = ("ours", "protopnet")


def evaluate_parts(
    model: PatchNetwork,
    preprocessing: Preprocessing,
    images: ImageSet,
    *,
    explainers: Sequence[str] = DEFAULT,
    classes: int | Sequence[int] | None = None,
    per_class: int | None = None,
    budget: int = 512,
    players: Players | None = None,
    noise: float = NOISE,
    box: float = BOX,
    often: float = OFTEN,
    seed: int = 0,
    progress: Report | None = None,
) -> PartsEvaluation:
    """Consistency, stability and coverage of parts, of every prototype on images of its class.

    Of several findings it is about the prototypes that stand for a finding, on images that have it: what is
    not there is on no part.

    Args:
        model: the network
        preprocessing: how images are prepared for it
        images: with part locations or part maps, usually test images
        explainers: whose maps say where a prototype is, of `EXPLAINERS`
        classes: how many, drawn at random, or which ones by number; None: all
        per_class: images of a class at most; None: all
        budget: evaluations per image, for explainers that sample
        players: of their games; 8 x 8 windows by default
        noise: standard deviation, on normalized images
        box: side of the box around a map's peak, as a share of the image's
        often: the share of images that makes a prototype consistent
        seed: of the choice of classes, of noise, and of sampling
        progress: gets ("parts", images done, images in all)

    >>> from protopfaith.data import load_data
    >>> birds = load_data("birds", size=32, train=8, validation=8, test=16)
    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", birds.classes, prototypes_per_class=2, prototype_channels=8).eval()
    >>> found = evaluate_parts(model, birds.preprocessing, birds.test, explainers=["protopnet"], classes=3)
    >>> found.images, len(found.scores[0].prototypes)
    (6, 6)
    """
    check_arguments(evaluate_parts, locals())
    check_listener(progress, STAGES)
    names = part_names(images)
    _check(explainers, noise, box, often)
    seed_number(seed)
    chosen = _classes(images, model.class_names, classes, seed)
    found = [_images_of(images, label, per_class) for label in chosen]
    if players is not None and len(players) == 1:
        height, width = preprocessing.size
        raise ProtoPFaithError(
            f"One region covers the whole image of {height}x{width} pixels, so that no map has a place; give "
            "smaller windows as players."
        )
    options = Options(players or _windows(preprocessing.size), budget=budget, seed=seed)
    where = _Box(preprocessing.size, box)
    total, done = sum(map(len, found)), 0
    if progress is not None:
        progress("parts", 0, total)
    collected: dict[str, list[_ClassHits]] = {name: [] for name in explainers}
    for label, indices in zip(chosen, found, strict=True):
        prototypes = _prototypes_of(model, label)
        points = torch.stack([part_points(_points(images, index), names) for index in indices])
        looks: dict[str, list[tuple[Tensor, Tensor]]] = {name: [] for name in explainers}
        for index in indices:
            image = preprocessing.normalize(images.image(index)).to(model.prototypes.device)
            noisy = image + noise * _noise(image, seed, index)
            for name in explainers:
                places = [_places(name, model, one, prototypes, options) for one in (image, noisy)]
                looks[name].append((places[0], places[1]))
            done += 1
            if progress is not None:
                progress("parts", done, total)
        for name in explainers:
            collected[name].append(_class_hits(label, prototypes, points, looks[name], where))
    scores = tuple(_scores(name, collected[name], model.class_names, names, often) for name in explainers)
    settings: dict[str, Any] = {"budget": budget, "noise": noise, "box": box, "often": often, "seed": seed}
    settings["weights_sha256"] = weights_hash(model)
    peaks = {name: [one for hits in collected[name] for one in hits.places] for name in explainers}
    shown = tuple(index for indices in found for index in indices)
    owners = tuple(label for label, indices in zip(chosen, found, strict=True) for _ in indices)
    return PartsEvaluation(scores, len(chosen), total, names, settings, peaks, shown, owners)


def part_names(images: ImageSet) -> tuple[str, ...]:
    """The parts that a set of images knows, by part maps or by locations; raises if it knows none."""
    names = images.part_names if images.part_maps is not None else ()
    names = names or tuple(dict.fromkeys(name for record in images.records for name in record.points))
    if not names:
        raise ProtoPFaithError(
            "These images have no part locations, so that it is not known which part a prototype sits on; "
            "use data with parts, such as cub (with its folder parts/) or birds."
        )
    return tuple(names)


def _points(images: ImageSet, index: int) -> dict[str, tuple[float, float]]:
    if images.part_maps is None:
        return images.points(index)
    return {name: mask_point(mask) for name, mask in images.mask(index).items()}


def _check(explainers: Sequence[str], noise: float, box: float, often: float) -> None:
    if not len(explainers) or len(set(explainers)) < len(explainers):
        raise ProtoPFaithError(f"Name each kind of maps once, at least one of {', '.join(EXPLAINERS)}.")
    for name in explainers:
        EXPLAINERS[name]
    finite_number(noise, "The noise", least=0)
    finite_number(box, "The side of the box", above=0, most=1)
    finite_number(often, "The share of images of a consistent prototype", above=0, most=1)


def _classes(
    images: ImageSet, names: Sequence[str], wanted: int | Sequence[int] | None, seed: int
) -> list[int]:
    """Numbers of classes that have images."""
    present = sorted({label for index in range(len(images)) for label in images.shows(index)})
    if not present:
        raise ProtoPFaithError("The set holds no images to judge prototypes on; choose another split.")
    if wanted is None:
        return present
    if not isinstance(wanted, int):
        for label in wanted:
            whole_number(label, "The number of a class", least=0, most=len(names) - 1)
        found = [label for label in wanted if label in present]
        if not found:
            asked = ", ".join(names[label] for label in wanted) or "an empty list"
            raise ProtoPFaithError(
                f"The set holds no images of the classes asked for ({asked}); name others, or choose another "
                "split."
            )
        return found
    whole_number(wanted, "The number of classes", least=1)
    order = torch.randperm(len(present), generator=torch.Generator().manual_seed(seed)).tolist()
    return sorted(present[place] for place in order[:wanted])


def _images_of(images: ImageSet, label: int, most: int | None) -> list[int]:
    found = [index for index in range(len(images)) if label in images.shows(index)]
    return found if most is None else found[: whole_number(most, "The images per class", least=1)]


def _prototypes_of(model: PatchNetwork, label: int) -> list[int]:
    """Those of a class, or those that stand for a finding."""
    own = model.prototype_classes.cpu() == label
    if outcome_of(model) == "several":
        own &= weights_of(model).cpu()[label] >= 0
    return torch.where(own)[0].tolist()


def _windows(size: tuple[int, int]) -> Players:
    return Players.windows(
        size, max(16, math.ceil(max(size) / 8)) if max(size) > 128 else max(size) // 8 or 1
    )


def _noise(image: Tensor, seed: int, index: int) -> Tensor:
    generator = torch.Generator().manual_seed((seed + 7_919 * (index + 1)) % 2**63)
    return torch.randn(image.shape, generator=generator).to(image)


def _places(
    name: str, model: PatchNetwork, image: Tensor, prototypes: Sequence[int], options: Options
) -> Tensor:
    """Where the maps of the prototypes peak, (P, 2)."""
    maps = EXPLAINERS[name](model, image, prototypes, options).maps
    return torch.tensor([peak(one) for one in maps], dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class _ClassHits:
    """The prototypes of a class on its images."""

    label: int
    prototypes: list[int]
    places: list[Tensor]  # of peaks, in each image (P, 2)
    visible: Tensor  # (I, J)
    hits: Tensor  # (P, I, J): the parts in the boxes
    noisy: Tensor  # the same after noise
    main: Tensor  # (P,)


def _class_hits(
    label: int, prototypes: list[int], points: Tensor, looks: Sequence[tuple[Tensor, Tensor]], box: _Box
) -> _ClassHits:
    """From points (I, J, 2), and where maps peak in each image, without and with noise."""
    hits = torch.stack([box.parts(one, places) for one, (places, _) in zip(points, looks, strict=True)], 1)
    noisy = torch.stack([box.parts(one, moved) for one, (_, moved) in zip(points, looks, strict=True)], 1)
    nearest = [
        [nearest_part(one, place, hit) for one, place, hit in zip(points, places, row, strict=True)]
        for places, row in zip(zip(*(look[0].tolist() for look in looks), strict=True), hits, strict=True)
    ]
    visible, main = ~points.isnan().any(2), main_parts(torch.tensor(nearest))
    return _ClassHits(label, prototypes, [look[0] for look in looks], visible, hits, noisy, main)


@dataclass(frozen=True)
class _Box:
    size: tuple[int, int]
    share: float

    def parts(self, points: Tensor, places: Tensor) -> Tensor:
        """Which parts of an image are in the box around each place: (P, J)."""
        return torch.stack([parts_in_box(points, place, self.size, self.share) for place in places.tolist()])


def _scores(
    name: str, found: Sequence[_ClassHits], class_names: Sequence[str], parts: Sequence[str], often: float
) -> PartScores:
    rows, covered, kinds = [], [], part_kinds(parts)
    for one in found:
        frequency = part_frequencies(one.hits, one.visible).nan_to_num(nan=0.0).amax(1).tolist()
        verdicts = consistent(one.hits, one.visible, often).tolist()
        stability = stable(one.hits, one.noisy, one.visible).tolist()
        covered.append(coverage(one.main, kinds))
        for place, prototype in enumerate(one.prototypes):
            main = int(one.main[place])
            part = parts[main] if main >= 0 else ""
            rows.append(
                PrototypeParts(
                    prototype,
                    class_names[one.label],
                    part,
                    frequency[place],
                    verdicts[place],
                    stability[place],
                )
            )
    return PartScores(
        name,
        _mean([float(row.consistent) for row in rows]),
        _mean([row.stability for row in rows]),
        _mean([float(count) for count in covered]),
        tuple(rows),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
