"""What many explanations say together: where evidence lies, what stands out, what moved."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from protopfaith.annotations import check_arguments
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.arrow import pyarrow_module
from protopfaith.explanation.bulk.dataset import Bulk

NEEDED = (
    "image",
    "error",
    "prediction",
    "class",
    "probability",
    "values",
    "decided",
    "inside",
    "box_share",
    "nearest_distance",
    "usual_distance",
)
LISTED = 20  # images of each kind that are named
OUTSIDE = 0.5  # less than this share of the evidence on the object stands out,
ANYWHERE = 2.0  # and less than so many times what it would be anywhere: regions may be larger than the object
ONE_REGION = 0.5  # more than this share of the evidence in one region stands out
FEW = 20_000  # images up to which groups take all of them at a time
MOST_GROUPS = 6
IMAGES_PER_GROUP = 10


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """The images that a class was explained for.

    Args:
        name: of the class
        images: how many
        share: of all images that were explained
        probability: mean of the predicted class's
        map: mean evidence of the regions
        unfamiliar: share of images that look like nothing the network knows; NaN where that is unknown
    """

    name: str
    images: int
    share: float
    probability: float
    map: np.ndarray
    unfamiliar: float


@dataclass(frozen=True, eq=False)
class Group:
    """Images whose maps are alike.

    Args:
        images: how many
        map: their mean map, of length one
        classes: the most frequent classes among them
        examples: names of those nearest to the mean
    """

    images: int
    map: np.ndarray
    classes: tuple[str, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Drift:
    """One class against another data set.

    Args:
        name: of the class
        share: of the images, here and there
        probability: mean, here and there
        correlation: of both mean maps; NaN where the class is missing in one
    """

    name: str
    share: tuple[float, float]
    probability: tuple[float, float]
    correlation: float


@dataclass(frozen=True, eq=False)
class Summary:
    """What many explanations say together.

    Args:
        images: how many were explained
        failures: images that could not be explained, and why
        classes: those that were explained, the most frequent first
        outside: images whose evidence lies outside the object (its mask or boxes), with the share inside
        one_region: images whose evidence lies in one region, with its share
        groups: images with similar maps, the largest group first
        drift: against another data set, the largest change first
        size: height and width of the images
        window: rows and columns of a region in pixels
        maps: of the images that are named among `outside`, `one_region` and `groups`: the evidence of regions
            whose sign is known, zero elsewhere

    >>> from tempfile import mkdtemp
    >>> from protopfaith.explanation import explain_bulk
    >>> bulk = explain_bulk("runs/birds", ["bird.png"], mkdtemp(), players=16, budget=64)
    >>> summarize(bulk)
    Summary(1 images, 1 classes)
    """

    images: int
    failures: tuple[tuple[str, str], ...]
    classes: tuple[ClassSummary, ...]
    outside: tuple[tuple[str, float], ...]
    one_region: tuple[tuple[str, float], ...]
    groups: tuple[Group, ...]
    drift: tuple[Drift, ...]
    size: tuple[int, int]
    window: tuple[int, int]
    maps: dict[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Summary({self.images:,} images, {len(self.classes)} classes)"


def summarize(bulk: Bulk, against: Bulk | None = None) -> Summary:
    """Reads a data set and says what stands out.

    Args:
        bulk: finished or not; its regions are windows
        against: another one, of the same network and regions, to compare with

    >>> from tempfile import mkdtemp
    >>> from protopfaith.explanation import explain_bulk
    >>> bulk = explain_bulk("runs/birds", ["bird.png"], mkdtemp(), players=16, budget=64)
    >>> summarize(bulk, against=bulk).drift[0].correlation > 0.999
    True
    """
    check_arguments(summarize, locals())
    here = _Table(bulk)
    classes = here.classes()
    window = bulk.manifest.window
    assert window is not None
    outside, one_region, groups = here.outside(), here.one_region(), here.groups()
    named = [name for name, _ in (*outside, *one_region)] + [name for one in groups for name in one.examples]
    return Summary(
        images=len(here.names),
        failures=tuple(bulk.failures()),
        classes=classes,
        outside=outside,
        one_region=one_region,
        groups=groups,
        drift=() if against is None else _drift(bulk, classes, against),
        size=bulk.manifest.size,
        window=window,
        maps=here.shown_maps(named),
    )


class _Table:
    """The columns that are needed, of images that were explained."""

    def __init__(self, bulk: Bulk):
        if bulk.manifest.window is None:
            raise ProtoPFaithError(
                f"The regions in {bulk.folder} are each image's own, so maps have no mean; explain with "
                "windows (--players 16) to summarize."
            )
        table = bulk.table(NEEDED)
        known = [error is None for error in table["error"].to_pylist()]
        table = table.filter(pyarrow_module().array(known, "bool"))
        if not table.num_rows:
            raise ProtoPFaithError(
                f"{bulk.folder} has no finished part with an explained image yet; wait for one."
            )
        self.names: list[str] = table["image"].to_pylist()
        self.labels = np.array(table["class"].to_pylist())
        self.numbers = {
            name: np.array([math.nan if one is None else one for one in table[name].to_pylist()], float)
            for name in ("probability", "inside", "box_share", "nearest_distance", "usual_distance")
        }
        self.maps = _stacked(table["values"])
        self.decided = _stacked(table["decided"])

    def classes(self) -> tuple[ClassSummary, ...]:
        names, counts = np.unique(self.labels, return_counts=True)
        found = [self._class(str(name), int(count)) for name, count in zip(names, counts, strict=True)]
        return tuple(sorted(found, key=lambda one: (-one.images, one.name)))

    def _class(self, name: str, count: int) -> ClassSummary:
        mine = self.labels == name
        near, usual = (self.numbers[key][mine] for key in ("nearest_distance", "usual_distance"))
        known = ~np.isnan(usual)
        return ClassSummary(
            name,
            count,
            count / len(self.labels),
            float(self.numbers["probability"][mine].mean()),
            self.maps[mine].mean(0),
            float((near > usual)[known].mean()) if known.any() else math.nan,
        )

    def outside(self) -> tuple[tuple[str, float], ...]:
        inside, anywhere = self.numbers["inside"], self.numbers["box_share"]
        apart = inside < np.minimum(OUTSIDE, ANYWHERE * anywhere)
        order = np.argsort(np.where(np.isnan(inside), np.inf, inside), kind="stable")
        return tuple((self.names[i], float(inside[i])) for i in order if apart[i])[:LISTED]

    def one_region(self) -> tuple[tuple[str, float], ...]:
        positive = np.clip(self.maps, 0, None)
        total = positive.sum(1)
        largest = positive.argmax(1)
        rows = np.arange(len(largest))
        share = np.where(total > 0, positive[rows, largest] / np.maximum(total, 1e-30), 0.0)
        share = np.where(self.decided[rows, largest], share, 0.0)
        order = np.argsort(-share, kind="stable")
        return tuple((self.names[i], float(share[i])) for i in order[:LISTED] if share[i] > ONE_REGION)

    def shown_maps(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        wanted = set(names)
        return {
            name: np.where(self.decided[place], self.maps[place], 0.0)
            for place, name in enumerate(self.names)
            if name in wanted
        }

    def groups(self) -> tuple[Group, ...]:
        length = np.linalg.norm(self.maps, axis=1, keepdims=True)
        alike = self.maps / np.maximum(length, 1e-30)
        count = min(MOST_GROUPS, len(self.names) // IMAGES_PER_GROUP)
        if count > 1:
            count = min(count, len(np.unique(alike, axis=0)))  # copies of an image have one map
        if count < 2:
            return ()
        from sklearn.cluster import KMeans, MiniBatchKMeans

        whole: Any = KMeans if len(alike) <= FEW else MiniBatchKMeans  # which misses small groups
        means = whole(count, random_state=0, n_init=3).fit(alike)
        found = [
            self._group(alike, means, number) for number in range(count) if (means.labels_ == number).any()
        ]
        return tuple(sorted(found, key=lambda one: -one.images))

    def _group(self, alike: np.ndarray, means: Any, number: int) -> Group:
        members = np.flatnonzero(means.labels_ == number)
        center = means.cluster_centers_[number]
        near = members[np.argsort(np.linalg.norm(alike[members] - center, axis=1), kind="stable")]
        names, counts = np.unique(self.labels[members], return_counts=True)
        common = [str(names[i]) for i in np.argsort(-counts, kind="stable")[:3]]
        return Group(len(members), center, tuple(common), tuple(self.names[i] for i in near[:5]))


def _stacked(column: Any) -> np.ndarray:
    """Lists of equal length as one array."""
    joined = column.combine_chunks()
    flat = joined.flatten().to_numpy(zero_copy_only=False)
    return flat.reshape(len(joined), -1)


def _drift(bulk: Bulk, classes: tuple[ClassSummary, ...], against: Bulk) -> tuple[Drift, ...]:
    for name in ("weights", "size", "window"):
        if getattr(bulk.manifest, name) != getattr(against.manifest, name):
            raise ProtoPFaithError(
                f"{bulk.folder} and {against.folder} differ in {name}, so they cannot be compared; explain "
                "both with the same network and regions."
            )
    here = {one.name: one for one in classes}
    there = {one.name: one for one in _Table(against).classes()}
    found = [_compared(name, here.get(name), there.get(name)) for name in {**here, **there}]
    return tuple(sorted(found, key=lambda one: -abs(one.share[0] - one.share[1])))


def _compared(name: str, here: ClassSummary | None, there: ClassSummary | None) -> Drift:
    shares = [0.0 if one is None else one.share for one in (here, there)]
    probabilities = [math.nan if one is None else one.probability for one in (here, there)]
    correlation = math.nan
    if here is not None and there is not None and here.map.std() > 0 and there.map.std() > 0:
        correlation = float(np.corrcoef(here.map, there.map)[0, 1])
    return Drift(name, (shares[0], shares[1]), (probabilities[0], probabilities[1]), correlation)
