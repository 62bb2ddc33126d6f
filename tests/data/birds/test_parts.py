from __future__ import annotations

import numpy as np


def test_masks_lie_where_the_bird_is_drawn() -> None:
    """The same bird on two backgrounds: pixels of the bird agree, most others do not."""

    def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
        from protopfaith.data.birds import drawing, parts
        from protopfaith.data.birds.canvas import Canvas, Pose
        from protopfaith.data.birds.scene import paint_background

        plumage = drawing.choose_plumage(np.random.default_rng(5))
        canvas = Canvas(paint_background(np.random.default_rng(seed), 96), Pose(48, 50, 18, 0, False))
        for (part, _), paint in parts.VARIANTS.items():
            if part in ("tail", "wing", "beak"):
                paint(canvas, plumage)
        image, part_map = canvas.finish()
        return np.asarray(image).astype(int), part_map

    first, part_map = draw(1)
    second, same_map = draw(2)
    assert np.array_equal(part_map, same_map)
    differs = np.abs(first - second).max(-1) > 0
    # Pixels at the rim, and at hair-thin gaps between feathers, are mixed with the background.
    core = part_map > 0
    for axis in (0, 1):
        for shift in (-1, 1):
            core &= np.roll(part_map > 0, shift, axis)
    assert differs[core].mean() < 0.02
    assert differs[part_map == 0].mean() > 0.9


def test_every_variant_of_every_species_can_be_painted() -> None:
    from protopfaith.data.birds.parts import VARIANTS
    from protopfaith.data.birds.species import OWNED, SHARED

    owned = {pair for parts in OWNED.values() for pair in parts.items()}
    shared = {(part, name) for part, names in SHARED.items() for name in names}
    assert owned | shared == set(VARIANTS)
