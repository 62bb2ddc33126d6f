"""What each stage is trained on, against the plain way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from lightning.fabric import Fabric
from torch import Tensor

from protopfaith.data import ImageData
from protopfaith.data.hiding import Hiding
from protopfaith.data.transforms import Augmentation
from protopfaith.network import ProtoPNet
from protopfaith.training import Recipe
from protopfaith.training.images import TrainingImages
from protopfaith.training.objectives import Exact
from protopfaith.training.schedule import Stage
from protopfaith.training.streams import stage_batches

HIDDEN = Augmentation(hide=Hiding(share=1.0, smallest=8, largest=8))


@pytest.fixture(scope="module")
def model() -> ProtoPNet:
    torch.manual_seed(0)
    return ProtoPNet("small", ["red", "green", "blue"], 2, 8).eval()


@pytest.fixture
def images(recipe: Recipe, data: ImageData) -> TrainingImages:
    return TrainingImages(Fabric(accelerator="cpu", devices=1), recipe, data)


def epoch(
    name: Any, model: ProtoPNet, images: TrainingImages, augmentation: Augmentation, augment: bool = True
) -> list[tuple[Any, Tensor]]:
    """The batches of a stage, in an order that is always the same."""
    schedule = images.recipe.schedule
    schedule = replace(schedule, classifier=replace(schedule.classifier, augment=augment))
    images.recipe = replace(images.recipe, augmentation=augmentation, schedule=schedule)
    stream = stage_batches(Stage(name, 1), model, images, torch.Generator().manual_seed(5))
    return list(stream(images.order(0)))


@pytest.mark.parametrize("name", ["pretraining", "warmup", "joint"])
def test_stages_of_the_encoder_get_images_and_their_labels(
    name: str, model: ProtoPNet, images: TrainingImages, data: ImageData
) -> None:
    batches = epoch(name, model, images, Augmentation())
    for indices, (pixels, labels) in zip(images.order(0), batches, strict=True):
        expected = data.preprocessing.normalize(data.train.uint8()[indices])
        torch.testing.assert_close(pixels, expected, rtol=0, atol=1e-5)
        assert torch.equal(labels, data.train.labels[indices])


@pytest.mark.parametrize("augment", [True, False])
def test_the_f_stage_gets_distances_as_they_are(
    augment: bool, model: ProtoPNet, images: TrainingImages, data: ImageData
) -> None:
    """Without any augmentation the two ways to them agree."""
    batches = epoch("classifier", model, images, Augmentation(), augment)
    with torch.no_grad():
        distances = model.distances(data.preprocessing.normalize(data.train.uint8()))
    for indices, (found, labels) in zip(images.order(0), batches, strict=True):
        assert isinstance(found, Exact)
        assert not found.tensor.requires_grad
        torch.testing.assert_close(found.tensor, distances[indices], rtol=1e-4, atol=1e-5)
        assert torch.equal(labels, data.train.labels[indices])


def test_stored_distances_do_not_see_augmentation(model: ProtoPNet, images: TrainingImages) -> None:
    plain = epoch("classifier", model, images, Augmentation(), augment=False)
    for augment in (False, True):
        hidden = epoch("classifier", model, images, HIDDEN, augment)
        same = [torch.allclose(a.tensor, b.tensor) for (a, _), (b, _) in zip(plain, hidden, strict=True)]
        assert all(same) != augment


@pytest.mark.parametrize(("stages", "seen"), [("all", (1, 1)), ("plain", (1, 0)), ("prototypes", (0, 1))])
def test_regions_are_hidden_in_the_stages_that_the_recipe_says(
    stages: Any, seen: tuple[int, int], model: ProtoPNet, images: TrainingImages
) -> None:
    hiding = replace(HIDDEN, hide=replace(HIDDEN.hide, stages=stages))
    for name, expected in zip(("pretraining", "joint"), seen, strict=True):
        plain = epoch(name, model, images, Augmentation())
        found = epoch(name, model, images, hiding)
        changed = any(not torch.equal(a, b) for (a, _), (b, _) in zip(plain, found, strict=True))
        assert changed == bool(expected)
