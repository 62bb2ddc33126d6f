"""Signs that a cycle is spoiling the prototypes, said when prototypes have just been projected."""

from __future__ import annotations

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
    if before is not None and after is not None and before - after > FALL:
        sentences.append(
            f"Projection took the validation balanced accuracy from {before:.3f} to {after:.3f}."
        )
    return sentences
