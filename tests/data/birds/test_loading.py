"""The embedded birds: deterministic, balanced, with truthful masks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from protopfaith.data import ImageData, birds, load_data
from protopfaith.errors import ProtoPFaithError

SMALL = {"train": 40, "validation": 16, "test": 16}


@pytest.fixture(scope="module")
def data() -> ImageData:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROTOPFAITH_CACHE", "/dev/null/nowhere")
        return load_data("birds", **SMALL)


def test_shapes_and_classes(data: ImageData) -> None:
    assert data.train.uint8().shape == (40, 3, 96, 96)
    assert data.train.uint8().dtype == torch.uint8
    assert len(data.classes) == 8
    assert set(Counter(data.train.labels.tolist()).values()) == {5}
    assert len({*data.train.paths, *data.validation.paths, *data.test.paths}) == 72


def test_the_same_seed_gives_the_same_birds_however_many_are_drawn(data: ImageData) -> None:
    few = birds.draw_birds({"train": 8, "validation": 0, "test": 8})
    assert torch.equal(few.uint8()[:8], data.train.uint8()[:8])
    assert torch.equal(few.uint8()[8:], data.test.uint8()[:8])


def test_another_seed_gives_other_birds(data: ImageData) -> None:
    other = birds.draw_birds({"train": 8, "validation": 0, "test": 0}, seed=1)
    assert not torch.equal(other.uint8(), data.train.uint8()[:8])


def test_the_cache_gives_what_was_drawn(data: ImageData) -> None:
    for _ in range(2):
        again = load_data("birds", **SMALL)
        assert again.fingerprint == data.fingerprint
        assert all(torch.equal(a, again.train.mask(3)[name]) for name, a in data.train.mask(3).items())
    assert isinstance(again.train.pixels, np.memmap)


def test_every_species_owns_variants_that_no_other_can_have() -> None:
    for species, owned in birds.OWNED.items():
        assert owned
        assert birds.defining_parts(species) == tuple(owned)
        for part, variant in owned.items():
            assert variant not in birds.SHARED[part]
            others = [other.get(part) for name, other in birds.OWNED.items() if name != species]
            assert variant not in others


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


def test_masks_are_disjoint_parts_of_a_bird_that_fills_the_picture(data: ImageData) -> None:
    for i in range(len(data.train)):
        masks = data.train.mask(i)
        total = torch.stack(list(masks.values())).int().sum(0)
        assert total.max() == 1
        assert 0.08 < float(total.float().mean()) < 0.5
        for part in birds.defining_parts(data.classes[int(data.train.labels[i])]):
            assert int(masks[part].sum()) >= 20, (i, part)


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


def test_folds(data: ImageData) -> None:
    folds = [load_data("birds", fold=k, **SMALL) for k in range(5)]
    validated = [path for fold in folds for path in fold.validation.paths]
    assert sorted(validated) == sorted(data.train.paths + data.validation.paths)
    assert all(fold.test.paths == data.test.paths for fold in folds)
    assert len(load_data("birds", fold="none", **SMALL).train) == 56


def test_another_size() -> None:
    assert load_data("birds", size=48, train=8, validation=0, test=8).train[0][0].shape == (3, 48, 48)


@pytest.mark.parametrize("options", [{"train": 3}, {"size": (40, 50)}, {"root": "somewhere"}, {"size": 2}])
def test_impossible_wishes(options: dict[str, object]) -> None:
    with pytest.raises(ProtoPFaithError):
        load_data("birds", **{**SMALL, **options})  # type: ignore[arg-type]


def test_unknown_species() -> None:
    with pytest.raises(ProtoPFaithError, match="did you mean 'Great Tukka'"):
        birds.defining_parts("Great Tuka")
