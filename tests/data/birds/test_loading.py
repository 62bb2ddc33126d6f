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


def test_masks_are_disjoint_parts_of_a_bird_that_fills_the_picture(data: ImageData) -> None:
    for i in range(len(data.train)):
        masks = data.train.mask(i)
        total = torch.stack(list(masks.values())).int().sum(0)
        assert total.max() == 1
        assert 0.08 < float(total.float().mean()) < 0.5
        for part in birds.defining_parts(data.classes[int(data.train.labels[i])]):
            assert int(masks[part].sum()) >= 20, (i, part)


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
