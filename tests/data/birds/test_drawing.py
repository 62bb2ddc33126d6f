from __future__ import annotations

import numpy as np

from protopfaith.data import birds


def test_drawn_variants_are_owned_or_shared() -> None:
    seen: dict[str, set[str]] = {part: set() for part in birds.SHARED}
    for number in range(24):
        species = birds.CLASSES[number % 8]
        bird = birds.draw_bird(species, np.random.default_rng(number), size=32)
        assert set(bird.variants) == set(birds.SHARED)
        for part, variant in bird.variants.items():
            assert variant == birds.OWNED[species].get(part) or variant in birds.SHARED[part]
            if part not in birds.OWNED[species]:
                seen[part].add(variant)
    assert seen == {part: set(names) for part, names in birds.SHARED.items()}


def test_color_says_nothing_about_the_species() -> None:
    """The plumage is drawn before anything that depends on the species, from the same generator state."""
    from protopfaith.data.birds.drawing import choose_plumage, choose_variants

    for number in range(5):
        plumages = set()
        for species in birds.CLASSES:
            rng = np.random.default_rng(number)
            choose_variants(species, rng)
            plumages.add(choose_plumage(rng))
        assert len(plumages) == 1
