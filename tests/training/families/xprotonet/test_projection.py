"""Prototypes of an XProtoNet become what they see of training images."""

from __future__ import annotations

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.network import XProtoNet
from protopfaith.training.batches import ResidentImages
from protopfaith.training.families.xprotonet.projection import nearest_images, seen_prototypes, suits
from protopfaith.training.projection import project

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data():
    return load_data("birds_multilabel", size=32, train=40, validation=32, test=32, missing=0.2)


@pytest.fixture
def model(data) -> XProtoNet:
    torch.manual_seed(0)
    return XProtoNet("small", list(data.classes), 4, 8).eval()


def seen(model: XProtoNet, data, index: int) -> torch.Tensor:
    with torch.no_grad():
        return model.seen(data.preprocessing(data.train.image(index))[None])[0]


def allowed(model: XProtoNet, data, prototype: int) -> list[int]:
    wanted = 1.0 if model.prototype_signs[prototype] > 0 else 0.0
    labels = data.train.labels[:, int(model.prototype_classes[prototype])]
    return [index for index in range(len(labels)) if float(labels[index]) == wanted]


def test_prototypes_move_to_the_nearest_image_that_they_stand_for(model: XProtoNet, data) -> None:
    before = model.prototypes.detach().clone()
    project(model, ResidentImages(data.train, CPU), data.train, data.preprocessing)
    for prototype in range(len(before)):
        images = allowed(model, data, prototype)
        gaps = [float((seen(model, data, i)[prototype] - before[prototype]).square().sum()) for i in images]
        source = model.sources[prototype]
        index = data.train.paths.index(source.image)
        assert index in images
        assert gaps[images.index(index)] == pytest.approx(min(gaps), abs=1e-5)
        assert torch.allclose(model.prototypes[prototype], seen(model, data, index)[prototype], atol=1e-5)
        with torch.no_grad():
            x = data.preprocessing(data.train.image(index))[None]
            assert float(model.distances(x)[0, prototype]) == pytest.approx(0, abs=1e-5)
            occurrence = model.occurrence_maps(x)[0, prototype]
        assert float(occurrence[source.row, source.column]) == float(occurrence.max())


def test_distinct_prototypes_of_a_finding_share_no_image(model: XProtoNet, data) -> None:
    project(model, ResidentImages(data.train, CPU), data.train, data.preprocessing, distinct=True)
    for finding in range(len(data.classes)):
        members = (model.prototype_classes == finding).nonzero().flatten().tolist()
        images = [model.sources[prototype].image for prototype in members]
        assert len(set(images)) == len(images)


def test_unknown_labels_suit_no_prototype() -> None:
    labels = torch.tensor([[float("nan")], [1.0], [0.0]])
    found = suits(labels, torch.tensor([0, 0]), torch.tensor([1.0, -1.0]))
    assert found.tolist() == [[False, False], [True, False], [False, True]]


def test_a_prototype_without_images_stays() -> None:
    assert nearest_images(torch.tensor([[torch.inf, 0.1]]), [0, 0], distinct=True) == [None, 0]
    assert nearest_images(torch.tensor([[torch.inf, 0.1]]), [0, 0], distinct=False) == [None, 0]


def test_they_start_on_what_they_see(model: XProtoNet, data) -> None:
    batches = ResidentImages(data.train, CPU)
    found = seen_prototypes(model, batches, data.preprocessing, torch.Generator().manual_seed(0))
    for prototype in range(len(found)):
        gaps = [
            float((seen(model, data, i)[prototype] - found[prototype]).abs().max())
            for i in allowed(model, data, prototype)
        ]
        assert min(gaps) < 1e-5
