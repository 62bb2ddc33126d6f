"""The embedded data: small birds, drawn from a seed, with a mask for every part."""

from protopfaith.data.birds.attributes import FINDINGS, finding_part
from protopfaith.data.birds.drawing import Bird, draw_bird
from protopfaith.data.birds.loading import draw_birds, load_birds
from protopfaith.data.birds.species import CLASSES, OWNED, PARTS, SHARED, defining_parts

__all__ = [
    "CLASSES",
    "FINDINGS",
    "OWNED",
    "PARTS",
    "SHARED",
    "Bird",
    "defining_parts",
    "draw_bird",
    "draw_birds",
    "finding_part",
    "load_birds",
]
