"""What is measured in which stage, against the plain way."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from lightning.fabric import Fabric
from torch import nn

from protopfaith.data import ImageData
from protopfaith.network import ProtoPNet, output_channels
from protopfaith.training import Recipe, Run
from protopfaith.training.images import TrainingImages
from protopfaith.training.metrics import set_balanced_accuracy
from protopfaith.training.schedule import Stage
from protopfaith.training.validation import stored_distances, validation


@pytest.fixture
def model(trained: Run) -> ProtoPNet:
    return trained.model().train()  # as the loop has it when an epoch ends


@pytest.fixture
def head(model: ProtoPNet) -> nn.Linear:
    return nn.Linear(output_channels(model.encoder, 3), 3)


@pytest.fixture
def images(recipe: Recipe, data: ImageData) -> TrainingImages:
    return TrainingImages(Fabric(accelerator="cpu", devices=1), recipe, data)


@pytest.mark.parametrize("name", ["warmup", "joint", "classifier"])
def test_accuracy_is_that_of_the_model_now(
    name: str, model: ProtoPNet, head: nn.Linear, images: TrainingImages, data: ImageData
) -> None:
    """Also after F changed, which is all that changes while distances are kept."""
    measure = validation(Stage(name, 1), model, head, images)  # type: ignore[arg-type]
    first = measure()
    assert first == pytest.approx(set_balanced_accuracy(model, data.validation, data.preprocessing))
    with torch.no_grad():
        model.classifier.weight.neg_()
    second = measure()
    assert second == pytest.approx(set_balanced_accuracy(model, data.validation, data.preprocessing))
    assert second != first


def test_pretraining_measures_the_plain_classifier(
    model: ProtoPNet, head: nn.Linear, images: TrainingImages, data: ImageData
) -> None:
    found = validation(Stage("pretraining", 1), model, head, images)()
    images = data.preprocessing.normalize(data.validation.uint8())
    model.eval()
    predicted = head(model.encoder(images).mean((2, 3))).argmax(1)
    right = (predicted == data.validation.labels).double()
    assert found == pytest.approx(float(right.mean()))  # as many images of every class


def test_before_projection_a_recipe_may_do_without(
    model: ProtoPNet, head: nn.Linear, images: TrainingImages, recipe: Recipe, data: ImageData
) -> None:
    images.recipe = replace(recipe, compute=replace(recipe.compute, validate="projected"))
    assert validation(Stage("joint", 1), model, head, images)() is None
    assert validation(Stage("classifier", 1), model, head, images)() is not None
    empty = replace(data, validation=data.validation.split(["train"] * len(data.validation))["validation"])
    without = TrainingImages(images.fabric, recipe, empty)
    assert validation(Stage("classifier", 1), model, head, without)() is None


def test_distances_are_those_of_evaluation_mode(
    model: ProtoPNet, images: TrainingImages, data: ImageData
) -> None:
    found = stored_distances(model, images, images.train)
    expected = model.eval().distances(data.preprocessing.normalize(data.train.uint8()))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
