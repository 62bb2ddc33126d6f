"""A small projected network, made in a second, and a run folder of it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from torch import nn

from protopfaith.data import ImageData, ImageSet, Preprocessing, Record
from protopfaith.evaluation import Options
from protopfaith.network import ProtoPNet, PrototypeSource
from protopfaith.shapley import Players
from protopfaith.training import Run, train
from protopfaith.training.recipe import recipe_from_dict

SIZE = 24
PREPROCESSING = Preprocessing((SIZE, SIZE), 3, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))


def pictures(split: str, count: int) -> ImageSet:
    """Noise with a bright square in the color of the class; the square is the only part."""
    generator = np.random.default_rng(len(split))
    pixels = generator.integers(90, 165, (count, 3, SIZE, SIZE), dtype=np.uint8)
    parts = np.zeros((count, SIZE, SIZE), np.uint8)
    for index in range(count):
        row, column = generator.integers(0, SIZE - 8, 2)
        pixels[index, index % 2, row : row + 8, column : column + 8] = 250
        parts[index, row : row + 8, column : column + 8] = 1
    records = [
        Record(f"{split}/{index}.png", index % 2, hashlib.sha256(pixels[index].tobytes()).hexdigest())
        for index in range(count)
    ]
    return ImageSet(pixels, records, ("red", "green"), part_maps=parts, part_names=("square",))


def data() -> ImageData:
    sets = [pictures(split, count) for split, count in (("train", 12), ("validation", 4), ("test", 4))]
    return ImageData(*sets, ("red", "green"), "squares", PREPROCESSING)


def encoder() -> nn.Sequential:
    layers = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1)]
    return nn.Sequential(*layers, nn.ReLU())


@pytest.fixture(scope="session")
def images() -> ImageData:
    return data()


@pytest.fixture(scope="session")
def model(images: ImageData) -> ProtoPNet:
    """Random weights, batch norms that have seen the images, prototypes that are parts of them."""
    torch.manual_seed(0)
    network = ProtoPNet(encoder(), ["red", "green"], prototypes_per_class=2, prototype_channels=8)
    pixels = PREPROCESSING.normalize(images.train.uint8())
    with torch.no_grad():
        network.features[2].weight.mul_(4)  # distances of some size, so that there is something to explain
        for _ in range(20):
            network(pixels)
        network.eval()
        latent = network.latent(pixels)
        for prototype in range(4):
            image = 2 * prototype + int(network.prototype_classes[prototype])  # of its own class
            network.prototypes[prototype] = latent[image, :, 2, 3]
            record = images.train.records[image]
            network.sources[prototype] = PrototypeSource(record.path, 2, 3, record.sha256)
    return network


@pytest.fixture(scope="session")
def image(images: ImageData, model: ProtoPNet) -> torch.Tensor:
    """The source image of prototype 0, normalized."""
    index = images.train.paths.index(model.sources[0].image)
    return PREPROCESSING.normalize(images.train.image(index))


@pytest.fixture(scope="session")
def options() -> Options:
    return Options(Players.windows((SIZE, SIZE), 6), budget=512, nodes=16, path_steps=16, samples=16, sizes=4)


@pytest.fixture(scope="session")
def players(options: Options) -> Players:
    return options.players


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A real, very short training on a few small birds; tests only read it."""
    recipe = recipe_from_dict(
        {
            "data": {"name": "birds", "size": [32, 32], "options": {"train": 16, "validation": 8, "test": 8}},
            "model": {"encoder": "small", "prototypes_per_class": 1, "prototype_channels": 8},
            "optimization": {"batch_size": 8},
            "schedule": {
                "cycles": 1,
                "pretraining": {"epochs": 1},
                "warmup": {"epochs": 1},
                "joint": {"epochs": 1},
                "classifier": {"epochs": 1},
            },
            "compute": {"accelerator": "cpu"},
        }
    )
    return train(recipe, tmp_path_factory.mktemp("runs") / "birds", progress=False)
