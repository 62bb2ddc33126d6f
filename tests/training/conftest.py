"""Small images that a small network can learn in seconds, and one trained run that many tests share."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from protopfaith.data import ImageData, ImageSet, Preprocessing, Record
from protopfaith.training import Recipe, Run, train
from protopfaith.training.recipe import recipe_from_dict

CLASSES = ("red", "green", "blue")
TINY = {
    "seed": 3,
    "augmentation": {"flip": 0.5},
    "model": {"encoder": "small", "prototypes_per_class": 2, "prototype_channels": 8},
    "optimization": {"batch_size": 12, "learning_rate": 0.01, "weight_decay": 0.001},
    "schedule": {
        "cycles": 2,
        "pretraining": {"epochs": 2, "learning_rate": 0.003},
        "warmup": {"epochs": 2},
        "joint": {"epochs": 2},
        "classifier": {"epochs": 3},
    },
    "compute": {"accelerator": "cpu"},
}


def blocks(split: str, count: int, size: int = 24) -> ImageSet:
    """Noise with a square in the color of the class."""
    generator = np.random.default_rng(len(split))
    pixels = generator.integers(0, 100, (count, 3, size, size), dtype=np.uint8)
    for index in range(count):
        row, column = generator.integers(0, size - 8, 2)
        pixels[index, index % 3, row : row + 8, column : column + 8] = 250
    records = [
        Record(f"{split}/{index}.png", index % 3, hashlib.sha256(pixels[index].tobytes()).hexdigest())
        for index in range(count)
    ]
    return ImageSet(pixels, records, CLASSES)


@pytest.fixture(scope="session")
def data() -> ImageData:
    sets = {"train": blocks("train", 36), "validation": blocks("validation", 12), "test": blocks("test", 12)}
    return ImageData(**sets, classes=CLASSES, fingerprint="blocks", preprocessing=Preprocessing((24, 24)))


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    return recipe_from_dict(TINY)


@pytest.fixture(scope="session")
def trained(recipe: Recipe, data: ImageData, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run; tests only read it."""
    folder: Path = tmp_path_factory.mktemp("runs") / "trained"
    return train(recipe, folder, data=data, progress=False)
