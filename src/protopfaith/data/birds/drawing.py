"""One bird, drawn from a random generator: its parts, pose, colors and surroundings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from protopfaith.annotations import check_arguments
from protopfaith.arguments import shown, whole_number
from protopfaith.data.birds import parts
from protopfaith.data.birds.canvas import Canvas, Pose, hsv
from protopfaith.data.birds.parts import VARIANTS, Plumage
from protopfaith.data.birds.scene import paint_background, paint_surroundings
from protopfaith.data.birds.species import OWNED, SHARED
from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import limit
from protopfaith.registry import did_you_mean


@dataclass(frozen=True, eq=False, repr=False)
class Bird:
    """A drawn bird.

    Args:
        image: RGB
        part_map: uint8 H x W, 0 or the number of the part that shows
        variants: what was drawn for each part

    >>> draw_bird("Great Tukka", np.random.default_rng(0), size=32)
    Bird(32 x 32, beak=giant, ...)
    """

    image: Image.Image
    part_map: np.ndarray
    variants: dict[str, str]

    def __repr__(self) -> str:
        part, variant = next(iter(self.variants.items()))
        return f"Bird({self.image.width} x {self.image.height}, {part}={variant}, ...)"


def draw_bird(species: str, rng: np.random.Generator, size: int = 96) -> Bird:
    """Draws a bird of the species; everything that is not its own is drawn from `rng`.

    >>> draw_bird("Great Tukka", np.random.default_rng(0)).variants["beak"]
    'giant'
    """
    check_arguments(draw_bird, locals())
    whole_number(size, "The side of a drawing", least=1, most=limit("PROTOPFAITH_MAX_SIDE"))
    if species not in OWNED:
        raise ProtoPFaithError(f"There is no species {shown(species)}; {did_you_mean(species, OWNED)}")
    variants = choose_variants(species, rng)
    return draw_variants(variants, choose_plumage(rng), rng, size)


def draw_variants(
    variants: dict[str, str], plumage: Plumage, rng: np.random.Generator, size: int = 96
) -> Bird:
    """Draws a bird with these parts and colors; pose, surroundings and light are drawn from `rng`."""
    canvas = Canvas(paint_background(rng, size), choose_pose(rng, size))
    paint_surroundings(canvas, rng)
    for part in ("legs", "tail", "crest"):
        VARIANTS[part, variants[part]](canvas, plumage)
    parts.paint_body(canvas, plumage)
    VARIANTS["breast", variants["breast"]](canvas, plumage)
    VARIANTS["wing", variants["wing"]](canvas, plumage)
    parts.paint_head(canvas, plumage)
    for part in ("beak", "eye"):
        VARIANTS[part, variants[part]](canvas, plumage)
    image, part_map = canvas.finish()
    return Bird(shade(image, part_map, rng), part_map, variants)


def choose_variants(species: str, rng: np.random.Generator) -> dict[str, str]:
    """The species' own variants; shared ones, each with equal chance, for all other parts."""
    shared = {part: names[rng.integers(len(names))] for part, names in SHARED.items()}
    return shared | OWNED[species]


def choose_plumage(rng: np.random.Generator) -> Plumage:
    """Colors that go together: neighbors on the color wheel for the feathers, an opposite one for accents."""
    hue = rng.uniform()
    saturation, value = rng.uniform(0.3, 0.68), rng.uniform(0.52, 0.82)
    near = hue + rng.choice([-1, 1]) * rng.uniform(0.03, 0.1)
    warm = rng.uniform(0.02, 0.14)
    return Plumage(
        body=hsv(hue, saturation, value),
        wing=hsv(near, saturation + 0.08, 0.66 * value),
        breast=hsv(hue + rng.normal(0, 0.05), rng.uniform(0.06, 0.2), rng.uniform(0.9, 0.98)),
        crest=hsv(near, saturation + 0.2, rng.uniform(0.55, 0.8) * value),
        accent=hsv(hue + 0.5 + rng.normal(0, 0.06), rng.uniform(0.5, 0.75), rng.uniform(0.82, 0.96)),
        beak=hsv(warm, rng.uniform(0.55, 0.85), rng.uniform(0.75, 0.98)),
        legs=hsv(warm, rng.uniform(0.5, 0.8), rng.uniform(0.75, 0.95)),
    )


def choose_pose(rng: np.random.Generator, size: int) -> Pose:
    """Anywhere near the middle, either way round, tilted up to 15 degrees."""
    unit = size * rng.uniform(0.175, 0.215)
    x, y = size * (0.5 + rng.uniform(-0.045, 0.045, 2)) + (0.0, 0.3 * unit)
    return Pose(float(x), float(y), float(unit), float(rng.uniform(-15, 15)), bool(rng.integers(2)))


def shade(image: Image.Image, part_map: np.ndarray, rng: np.random.Generator) -> Image.Image:
    """Rounds the bird (darker rim, lighter upper side) and changes the light of the whole scene."""
    size = image.width
    bird = Image.fromarray(np.where(part_map > 0, 255, 0).astype(np.uint8))
    inside = np.asarray(bird.filter(ImageFilter.GaussianBlur(size / 24)), float)[..., None] / 255
    soft = np.asarray(bird.filter(ImageFilter.GaussianBlur(0.5)), float)[..., None] / 255
    height = np.linspace(0.07, -0.07, size)[:, None, None]
    factor = 1 + soft * (0.42 * (inside - 0.72) + height)
    light = rng.uniform(0.88, 1.08) * (1 + rng.normal(0, 0.025, 3))
    pixels = np.asarray(image, float) * factor * light
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))
