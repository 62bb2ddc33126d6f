"""Birds with several findings: any of six special parts, each there or not, whatever the others are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from protopfaith.annotations import check_arguments
from protopfaith.arguments import finite_number
from protopfaith.data.birds.drawing import choose_plumage, draw_variants
from protopfaith.data.birds.loading import SPLITS, bird_ids, check_drawing, drawn_once
from protopfaith.data.birds.species import PARTS, SHARED
from protopfaith.data.imagedata import ImageData, split_pool
from protopfaith.data.imageset import ImageSet, Record
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.registry import DATASETS, Fold, Size, without_folder
from protopfaith.data.splits import deal_findings, with_fold
from protopfaith.errors import ProtoPFaithError

FINDINGS: dict[str, tuple[str, str]] = {
    "giant beak": ("beak", "giant"),
    "fan crest": ("crest", "fan"),
    "pearl wing": ("wing", "pearls"),
    "racket tail": ("tail", "rackets"),
    "barred breast": ("breast", "bars"),
    "eye mask": ("eye", "mask"),
}
"""The part that shows each finding, and how it then looks."""
COMMON = 0.35
"""How often a finding is there."""
PICTURES = 2
"""Of each bird: as of a patient, they belong together."""
FEWEST = 32


def finding_part(name: str) -> str:
    """The part that shows a finding of `birds_multilabel`.

    Args:
        name: of the finding

    >>> finding_part("giant beak")
    'beak'
    """
    check_arguments(finding_part, locals())
    if name not in FINDINGS:
        raise ProtoPFaithError(f"The birds have no finding {name!r}; there are {', '.join(FINDINGS)}.")
    return FINDINGS[name][0]


def draw_attributes(counts: Mapping[str, int], seed: int, size: int) -> tuple[np.ndarray, ...]:
    """Pixels, part maps and findings (N x 6, 0 or 1). A bird is on two pictures, in two poses."""
    ids = bird_ids(counts)
    pixels = np.empty((len(ids), 3, size, size), np.uint8)
    part_maps = np.empty((len(ids), size, size), np.uint8)
    findings = np.empty((len(ids), len(FINDINGS)), np.int64)
    for row, (split, index) in enumerate(ids):
        bird = np.random.default_rng([seed, SPLITS.index(split), index // PICTURES, 1])
        variants = {part: names[bird.integers(len(names))] for part, names in SHARED.items()}
        findings[row] = bird.uniform(size=len(FINDINGS)) < COMMON
        for there, (part, variant) in zip(findings[row], FINDINGS.values(), strict=True):
            if there:
                variants[part] = variant
        picture = np.random.default_rng([seed, SPLITS.index(split), index, 2])
        drawn = draw_variants(variants, choose_plumage(bird), picture, size)
        pixels[row] = np.asarray(drawn.image).transpose(2, 0, 1)
        part_maps[row] = drawn.part_map
    return pixels, part_maps, findings


@DATASETS.register("birds_multilabel")
@without_folder
def load_birds_multilabel(
    *,
    root: Path | None,
    size: Size,
    seed: int,
    fold: Fold,
    skip_unreadable: bool,
    train: int = 1000,
    validation: int = 300,
    test: int = 300,
    missing: float = 0.1,
) -> ImageData:
    """Embedded, no download: birds with any of six special parts, two pictures of each, some labels missing.

    `missing` is the share of labels of training images that are not known.
    """
    counts = {"train": train, "validation": validation, "test": test}
    side = check_drawing(counts, root, size, fewest=FEWEST)
    if not 0 <= finite_number(missing, "The share of missing labels") <= 0.9:
        raise ProtoPFaithError(f"The share of missing labels lies between 0 and 0.9, but it is {missing:g}.")
    arrays = drawn_once("birds_multilabel", counts, seed, side, draw_attributes, findings=(len(FINDINGS),))
    birds = _image_set(counts, arrays, missing, seed)
    groups = [record.group for record in birds.records]
    splits = [path.split("/")[0] for path in birds.paths]
    findings = [record.findings for record in birds.records]
    split_of = with_fold(splits, birds.paths, findings, groups, fold=fold, seed=seed, dealer=deal_findings)
    return split_pool(birds, split_of, Preprocessing((side, side), 3, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)))


def _image_set(
    counts: Mapping[str, int], arrays: tuple[np.ndarray, ...], missing: float, seed: int
) -> ImageSet:
    pixels, part_maps, findings = arrays
    ids = bird_ids(counts)
    unknown = np.random.default_rng([seed, 3]).uniform(size=findings.shape) < missing
    unknown &= np.array([split == "train" for split, _ in ids])[:, None]
    labels = np.where(unknown, -1, findings)
    records = [
        Record(
            f"{split}/{index:04d}",
            -1,
            hashlib.sha256(pixels[row].tobytes()).hexdigest(),
            group=f"{split} bird {index // PICTURES}",
            findings=tuple(labels[row].tolist()),
        )
        for row, (split, index) in enumerate(ids)
    ]
    return ImageSet(
        pixels, records, tuple(FINDINGS), part_maps=part_maps, part_names=PARTS, outcome="several"
    )
