"""The eight invented species: which part variants exist, and which belong to one species alone.

Every species owns two variants, each of another part. All its other parts are drawn at random, image by
image, from the variants that all species share. So only the owned parts tell the species: they are the ground
truth of what a good explanation should point at.
"""

from __future__ import annotations

from protopfaith.annotations import check_arguments
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import did_you_mean

SHARED: dict[str, tuple[str, ...]] = {
    "beak": ("cone", "slim"),
    "crest": ("none", "tuft"),
    "wing": ("plain", "edged"),
    "tail": ("square", "round"),
    "breast": ("plain", "bib"),
    "eye": ("plain", "ring"),
    "legs": ("bright", "dark"),
}

OWNED: dict[str, dict[str, str]] = {
    "Marsh Orrin": {"beak": "sickle", "breast": "spots"},
    "Great Tukka": {"beak": "giant", "tail": "forked"},
    "Crowned Pimwit": {"crest": "spire", "wing": "double bar"},
    "Lantern Hoolo": {"crest": "fan", "breast": "band"},
    "Plumed Wisper": {"crest": "plume", "wing": "pearls"},
    "Racket Zeelark": {"tail": "rackets", "eye": "mask"},
    "Ember Fenwit": {"tail": "raised fan", "wing": "epaulet"},
    "Barred Dunnark": {"breast": "bars", "eye": "brow"},
}

CLASSES: tuple[str, ...] = tuple(OWNED)

# The numbers in the part maps count this tuple from 1; body and head are the same for all species.
PARTS: tuple[str, ...] = ("body", "head", *SHARED)


def defining_parts(species: str) -> tuple[str, ...]:
    """The parts whose variant no other species has.

    Args:
        species: one of the eight invented ones

    >>> defining_parts("Great Tukka")
    ('beak', 'tail')
    """
    check_arguments(defining_parts, locals())
    if species not in OWNED:
        raise ProtoPFaithError(f"There is no bird species {species!r}; {did_you_mean(species, OWNED)}")
    return tuple(OWNED[species])
