"""How sure is a balanced accuracy that few images measured? An interval that does not vanish at 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

NORMAL = 1.959964  # 95% of a normal distribution is within so many standard deviations
HALVINGS = 40


def balanced_interval(accuracy: float, per_class: Sequence[int]) -> tuple[float, float]:
    """The 95% interval of a balanced accuracy: all that are within 1.96 of *their own* standard deviations.

    How often each class is recognized need not be known: of all ways in which classes may differ the one
    that varies most counts. With equally many images of each class this is Wilson's interval of all images;
    a class of few images, whose errors a single accuracy hides, makes it wider.

    Args:
        accuracy: balanced accuracy that was measured
        per_class: images of each class; those of classes without any do not count

    >>> low, high = balanced_interval(1.0, [32, 4])
    >>> round(low, 2), high
    (0.75, 1.0)
    """
    counts = [count for count in per_class if count > 0]
    return _end(accuracy, 0.0, counts), _end(accuracy, 1.0, counts)


def _end(accuracy: float, limit: float, counts: Sequence[int]) -> float:
    """The farthest number from `accuracy`, on the side of `limit`, that could still have led to it."""
    near, far = accuracy, limit
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        if (accuracy - middle) ** 2 <= NORMAL**2 * largest_variance(middle, counts):
            near = middle
        else:
            far = middle
    return far


def largest_variance(mean: float, counts: Sequence[int]) -> float:
    r"""Of the balanced accuracy of so many images of each class, if it is `mean` of all images there are.

    It is $\sum_c p_c (1 - p_c) / n_c / C^2$, at its largest over all $p_c$ from 0 to 1 with that mean.

    Args:
        mean: balanced accuracy on all images
        counts: images of each class, at least one

    >>> largest_variance(0.5, [50, 50])
    0.0025
    """
    classes = len(counts)

    def shares(slope: float) -> list[float]:
        # Where the variance is largest, all p_c that are not at a limit have the same slope.
        return [min(max((1 - slope * count) / 2, 0.0), 1.0) for count in counts]

    low, high = -1.0, 1.0  # at these all are 1, and all are 0
    for _ in range(HALVINGS):
        slope = (low + high) / 2
        low, high = (slope, high) if math.fsum(shares(slope)) > mean * classes else (low, slope)
    found = shares((low + high) / 2)
    return math.fsum(p * (1 - p) / count for p, count in zip(found, counts, strict=True)) / classes**2
