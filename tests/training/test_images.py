from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.data.hiding import Hiding, hide
from protopfaith.data.transforms import Augmentation
from protopfaith.training.images import TrainingImages, seed_for
from protopfaith.training.launch import make_fabric


@pytest.fixture
def images(recipe, data) -> TrainingImages:
    fabric = make_fabric(recipe.compute)
    fabric.launch()
    return TrainingImages(fabric, recipe, data)


def test_seeds_depend_on_every_part() -> None:
    assert seed_for(1, "order", 2) == seed_for(1, "order", 2)
    assert len({seed_for(1, 2), seed_for(12), seed_for(2, 1), seed_for("1/2", "")}) == 4


def test_an_epoch_s_order_is_its_own_and_always_the_same(images) -> None:
    first, again, other = (torch.cat(images.order("joint", 1, epoch)) for epoch in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(first.sort().values, torch.arange(36))
    assert images.iterations == 3


def test_without_augmentation_images_are_normalized_only(images, data) -> None:
    order = images.order("joint", 1, 0)
    generator = torch.Generator().manual_seed(0)
    batch, labels = next(images.augmented(order, generator, Augmentation()))
    assert torch.allclose(batch, data.preprocessing.normalize(data.train.uint8()[order[0]]), atol=1e-5)
    assert torch.equal(labels, data.train.labels[order[0]])


def test_outputs_are_in_the_order_of_the_images(images, data) -> None:
    found = images.outputs(images.validation, lambda x: x.mean((2, 3)))
    assert torch.allclose(
        found, data.preprocessing.normalize(data.validation.uint8()).mean((2, 3)), atol=1e-5
    )


def test_channels_last_changes_the_format_alone(images, recipe) -> None:
    images.recipe = replace(recipe, compute=replace(recipe.compute, channels_last=True))
    x = torch.rand(2, 3, 4, 4)
    assert images.format(x).is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(images.format(x), x)


def test_copies_come_after_the_images_and_change_none_of_them(images) -> None:
    order, changed = images.order("joint", 1, 0), Augmentation(rotation=20.0, flip=0.5)
    hiding = Hiding(share=0.5, smallest=4, largest=8, copies=True)

    def epoch(augmentation: Augmentation) -> list:
        return list(images.augmented(order, torch.Generator().manual_seed(5), augmentation))

    own = torch.Generator().manual_seed(seed_for(5, "copies"))
    for (plain, labels), (both, same) in zip(
        epoch(changed), epoch(replace(changed, hide=hiding)), strict=True
    ):
        assert torch.equal(labels, same)
        assert torch.equal(both[: len(labels)], plain)
        assert torch.equal(both[len(labels) :], hide(plain[:6], replace(hiding, share=1.0), own))
