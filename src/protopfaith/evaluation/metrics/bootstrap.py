"""How sure is a score? Intervals by drawing images, or whole patients, again and again with replacement."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, seed_number, shown, tensor, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.classification import check_classification, log_odds

LEVEL = 0.95
RESAMPLES = 1000
CHUNK = 4_000_000  # weights in memory at a time
FEW = 128  # positive images up to which pairs are counted one by one
SCORES = ("accuracy", "balanced_accuracy", "auroc")


@dataclass(frozen=True)
class Interval:
    """A score and the 95% interval around it; not-a-number where there is none.

    Args:
        value: the score
        low: the lower end
        high: the upper end

    >>> print(Interval(0.8, 0.75, 0.85))
    0.800 (0.750 to 0.850)
    """

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            instance(getattr(self, name), (int, float), f"The {name} of an interval", "a number")
        if self.low > self.high:
            raise ProtoPFaithError(
                f"An interval from {self.low:g} to {self.high:g} ends before it begins; exchange its ends."
            )

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "-"
        if math.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> dict[str, float | None]:
        """For JSON, which has no not-a-number: None instead."""
        return {name: None if math.isnan(number) else number for name, number in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Scores of a set of images, and what they are on sets that are drawn from it.

    Args:
        values: accuracy, balanced accuracy and AUROC of the images
        draws: the same on each resample, (R,)
        images: how many there are
        groups: how many are drawn: patients, or images that stand alone
        certain: groups that a bound is computed from where all images are right, or all wrong, by score

    >>> right = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    >>> bootstrap(right, torch.tensor([0, 1, 0, 1]), resamples=50)
    Bootstrap(4 images in 4 groups, 1.000 (0.398 to 1.000))
    """

    values: dict[str, float]
    draws: dict[str, Tensor]
    images: int
    groups: int
    certain: dict[str, int]

    def __repr__(self) -> str:
        return (
            f"Bootstrap({self.images} images in {self.groups} groups, {self.interval('balanced_accuracy')})"
        )

    def interval(self, score: str) -> Interval:
        """The score with its interval, see `interval_of`.

        Args:
            score: its name
        """
        if not isinstance(score, str) or score not in self.values:
            raise ProtoPFaithError(f"There is no score {shown(score)}; there are {', '.join(self.values)}.")
        return interval_of(self.values[score], self.draws[score], self.certain.get(score, 0))


def difference(first: Interval, second: Interval) -> Interval:
    """The first score minus the second, which comes from other images.

    From each score's own interval, on the side that counts (Zou and Donner's MOVER): so one without any
    variation in its resamples is not taken for certain.

    >>> print(difference(Interval(0.7, 0.6, 0.8), Interval(0.9, 0.9, 0.9)))
    -0.200 (-0.300 to -0.100)
    """
    value = first.value - second.value
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    return Interval(value, value - down, value + up)


def interval_of(value: float, draws: Tensor, certain: int = 0) -> Interval:
    """A score with the percentiles of what was drawn.

    Where no image is wrong (or none is right) every resample says the same, however few images there are: the
    interval then is the exact one of that many groups without an error, or none where that is not known. Nor
    is there one where all resamples agree on another value, as of a single patient, or of a network that
    calls all images the same.

    Args:
        value: the score
        draws: of the resamples, (R,)
        certain: groups that an exact bound is computed from; fewer than two: there is none

    >>> print(interval_of(1.0, torch.ones(50), certain=4))
    1.000 (0.398 to 1.000)
    >>> print(interval_of(1.0, torch.ones(50)))
    1.000
    >>> print(interval_of(0.5, torch.full((50,), 0.5)))
    0.500
    """
    if value not in (0.0, 1.0):
        low, high = percentiles(draws)
        return Interval(value, low, high) if low < high else Interval(value, math.nan, math.nan)
    if certain < 2:
        return Interval(value, math.nan, math.nan)
    bound = ((1 - LEVEL) / 2) ** (1 / certain)
    return Interval(value, bound, 1.0) if value == 1 else Interval(value, 0.0, 1 - bound)


def percentiles(draws: Tensor) -> tuple[float, float]:
    """The middle 95% of what was drawn; not-a-number for fewer than two numbers.

    >>> [round(end, 6) for end in percentiles(torch.arange(101.0))]
    [2.5, 97.5]
    """
    known = draws[~draws.isnan()].double()
    if len(known) < 2:
        return math.nan, math.nan
    ends = torch.tensor([(1 - LEVEL) / 2, (1 + LEVEL) / 2], dtype=torch.float64)
    low, high = known.quantile(ends).tolist()
    return low, high


def bootstrap(
    logits: Tensor,
    labels: Tensor,
    groups: Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Bootstrap:
    """Draws whole groups with replacement, as many as there are, and scores each such set.

    Images of one patient resemble each other, so that drawing them one by one would make intervals too
    narrow. Balanced accuracy and AUROC are means over the classes that occur among the images; in a resample
    that lacks a class, over the others.

    Args:
        logits: (N, C)
        labels: (N,)
        groups: which images belong together; None or an empty text: an image stands alone
        resamples: how many sets are drawn
        seed: of the draws

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 3.0]])
    >>> found = bootstrap(logits, torch.tensor([0, 1, 1, 1]), resamples=200)
    >>> found.values["accuracy"]
    0.75
    """
    check_arguments(bootstrap, locals())
    whole_number(resamples, "The number of resamples", least=1, most=1_000_000)
    logits, labels = logits.detach().cpu().double(), labels.detach().cpu().long()
    tensor(labels, "Labels", "one number for each image", 1)
    check_classification(tensor(logits, "Logits", "images x classes", 2), labels, logits.shape[-1])
    index = group_numbers(groups if groups is not None else [""] * len(labels))
    if len(index) != len(labels):
        raise ProtoPFaithError(f"There are {len(labels)} images but {len(index)} groups; give one for each.")
    scorer = _Scorer(logits, labels)
    plain = scorer(torch.ones(1, len(labels), dtype=torch.float64))
    count = int(index.max()) + 1
    drawn = [scorer(weights) for weights in group_weights(index, count, resamples, seed)] if count > 1 else []
    empty = torch.full((resamples,), math.nan, dtype=torch.float64)
    draws = {name: torch.cat([one[name] for one in drawn]) if drawn else empty for name in SCORES}
    per_class = [len(index[labels == label].unique()) for label in labels.unique()]
    certain = {"accuracy": count, "balanced_accuracy": min(min(per_class) * len(per_class), count)}
    return Bootstrap({name: float(plain[name]) for name in SCORES}, draws, len(labels), count, certain)


def group_numbers(groups: Sequence[str]) -> Tensor:
    """A number for each image, the same for those of one group.

    >>> group_numbers(["p1", "", "p1", ""]).tolist()
    [0, 1, 0, 2]
    """
    numbers: dict[str | int, int] = {}
    keys: list[str | int] = [group or place for place, group in enumerate(groups)]
    return torch.tensor([numbers.setdefault(key, len(numbers)) for key in keys], dtype=torch.long)


def group_weights(index: Tensor, count: int, resamples: int, seed: int) -> Iterator[Tensor]:
    """How often each image is in each resample, (r, N) at a time."""
    generator = torch.Generator().manual_seed(seed_number(seed))
    rows = max(1, CHUNK // len(index))
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        chosen = torch.randint(count, (size, count), generator=generator)
        times = torch.zeros(size, count, dtype=torch.float64)
        times.scatter_add_(1, chosen, torch.ones_like(times))
        yield times[:, index]


class _Scorer:
    """Scores of weighted images; what does not depend on the weights is done once."""

    def __init__(self, logits: Tensor, labels: Tensor):
        self.of_class = torch.nn.functional.one_hot(labels, logits.shape[1]).double()
        self.right = self.of_class * (logits.argmax(1) == labels).double()[:, None]
        self.odds = log_odds(logits) if logits.shape[1] > 1 else logits
        occurs = self.of_class.sum(0)
        self.both = [c for c in range(logits.shape[1]) if 0 < occurs[c] < len(labels)]
        if logits.shape[1] == 2:  # both are the same number
            self.both = self.both[:1]

    def __call__(self, weights: Tensor) -> dict[str, Tensor]:
        """`weights`: (R, N)."""
        total, right = weights @ self.of_class, weights @ self.right
        aurocs = [weighted_auroc(self.odds[:, c], self.of_class[:, c] > 0, weights) for c in self.both]
        none = torch.full((len(weights),), math.nan, dtype=torch.float64)
        return {
            "accuracy": right.sum(1) / total.sum(1),
            "balanced_accuracy": (right / total).nanmean(1),
            "auroc": torch.stack(aurocs).nanmean(0) if aurocs else none,
        }


def weighted_auroc(scores: Tensor, positive: Tensor, weights: Tensor) -> Tensor:
    """The share of pairs of a positive and a negative image in which the positive has the larger score (equal
    ones count half), where an image counts as often as its weight says; (R,).

    Args:
        scores: (N,)
        positive: (N,), bool
        weights: (R, N), not negative

    >>> weighted_auroc(torch.tensor([1.0, 2.0, 2.0]), torch.tensor([False, True, False]), torch.ones(1, 3))
    tensor([0.7500])
    """
    if int(positive.sum()) <= FEW:
        return _auroc_by_pairs(scores, positive, weights)
    return _auroc_by_order(scores, positive, weights)


def _auroc_by_pairs(scores: Tensor, positive: Tensor, weights: Tensor) -> Tensor:
    """Every positive image against every negative one, as one product of matrices: for few positive ones, as
    there are of each of many classes. Counts are exact in float32."""
    ours, others = scores[positive], scores[~positive, None]
    beaten = (others < ours).float() + (others == ours).float() / 2
    above, below = weights[:, positive], weights[:, ~positive]
    found = (below.float() @ beaten).to(weights.dtype)
    return (above * found).sum(1) / (above.sum(1) * below.sum(1))


def _auroc_by_order(scores: Tensor, positive: Tensor, weights: Tensor) -> Tensor:
    """The same by cumulative sums in the order of scores, for many positive images."""
    _, rank = scores.unique(return_inverse=True)  # sorted
    empty = torch.zeros(len(weights), int(rank.max()) + 1, dtype=weights.dtype)
    above = empty.index_add(1, rank[positive], weights[:, positive])
    below = empty.index_add(1, rank[~positive], weights[:, ~positive])
    before = below.cumsum(1) - below
    return (above * (before + below / 2)).sum(1) / (above.sum(1) * below.sum(1))
