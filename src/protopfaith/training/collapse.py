"""Signs that prototypes are being spoiled, said when they have just been projected and at the end."""

from __future__ import annotations

import math

from protopfaith.network import DistinctPrototypes

FEW = 0.8
"""Share of distinct prototypes below which it is said."""
FALL = 0.05
"""Of the balanced accuracy by projection."""


def signs_of_collapse(before: float | None, after: float | None, prototypes: DistinctPrototypes) -> list[str]:
    """Sentences about what projection has shown; none where all is well.

    Args:
        before: validation balanced accuracy just before projection; None where it is not measured
        after: and just after it
        prototypes: which are distinct

    >>> signs_of_collapse(0.9, 0.7, DistinctPrototypes(((0,), (1,)), (1, 1), 2))
    ['Projection took the validation balanced accuracy from 0.900 to 0.700.']
    """
    sentences = []
    if prototypes.fraction < FEW:
        sentences.append(
            f"Only {prototypes.distinct} of {prototypes.total} prototypes are distinct: those of a class "
            "have collapsed onto each other."
        )
    return sentences + signs_of_fall(before, after)


def signs_of_fall(before: float | None, after: float | None) -> list[str]:
    """A sentence where projection has cost much; the same numbers as in `signs_of_collapse`."""
    if before is None or after is None or before - after <= FALL:
        return []
    return [f"Projection took the validation balanced accuracy from {before:.3f} to {after:.3f}."]


def signs_of_shortfall(plain: float | None, prototypes: float | None, images: int) -> list[str]:
    """A sentence where the prototypes cost more of the plain classifier's accuracy than chance explains.

    Args:
        plain: its validation balanced accuracy; None where there is none
        prototypes: that of the network with prototypes
        images: how many validation images measured them

    >>> signs_of_shortfall(0.9, 0.89, 100)
    []
    """
    if plain is None or prototypes is None or images < 1:
        return []
    cost = plain - prototypes
    if cost <= FALL + 1 / math.sqrt(images):
        return []
    return [
        f"The prototypes cost {cost:.3f} of the plain classifier's accuracy, more than they should: try more "
        "prototypes (model.prototypes_per_class=10) or more epochs (schedule.joint.epochs=32)."
    ]
