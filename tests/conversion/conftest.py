"""A small folder of images, and an original network whose prototypes are projected onto them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms
from torchvision.datasets import ImageFolder

from protopfaith.conversion import ForeignNetwork
from protopfaith.data import Preprocessing
from protopfaith.network import build_encoder
from tests.conversion.originals import PPNet, original, save_original

CLASSES = ("blue", "green", "red")


@dataclass
class Pushed:
    """A network as the original program leaves it after its last push."""

    network: PPNet
    path: Path
    boxes: Path
    images: Path
    sources: list[str]  # of each prototype, relative to `images`


@pytest.fixture(scope="session")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Pushed:
    folder = tmp_path_factory.mktemp("original")
    random = np.random.default_rng(0)
    for split, count in (("train", 8), ("test", 3)):
        for label, name in enumerate(CLASSES):
            (folder / "images" / split / name).mkdir(parents=True)
            for number in range(count):
                pixels = random.integers(0, 90, (80, 100, 3), dtype=np.uint8)
                pixels[20:50, 25:60, 2 - label] = 240
                Image.fromarray(pixels).save(folder / "images" / split / name / f"{number}.png")
    network, boxes, sources = _push(original("resnet18", size=64), folder / "images")
    np.save(folder / "bb10.npy", boxes)
    path = save_original(network, folder / "10push0.9.pth")
    return Pushed(network, path, folder / "bb10.npy", folder / "images", sources)


@torch.no_grad()
def _push(network: PPNet, images: Path) -> tuple[PPNet, np.ndarray, list[str]]:
    """Every prototype moves onto a patch of an image of its class; images are read as torchvision does."""
    steps = [
        transforms.Resize((64, 64)),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
    data = ImageFolder(str(images / "train"), transforms.Compose(steps))
    boxes, sources = np.full((6, 6), -1), []
    for prototype in range(6):
        label = prototype // 2
        numbers = [number for number, (_, found) in enumerate(data.samples) if found == label]
        number = numbers[3 * (prototype % 2) + 1]
        z = network.add_on_layers(network.features(data[number][0][None]))[0]
        row, column = prototype % z.shape[1], (prototype + 1) % z.shape[2]
        network.prototype_vectors[prototype] = z[:, row, column][:, None, None]
        boxes[prototype] = [number, 0, 10, 0, 10, label]
        sources.append(Path(data.samples[number][0]).relative_to(images).as_posix())
    return network, boxes, sources


@pytest.fixture
def network() -> ForeignNetwork:
    """Small, as it was understood, with its prototypes in no order."""
    torch.manual_seed(0)
    return ForeignNetwork(
        "mine",
        "small",
        dict(build_encoder("small").state_dict()),
        [8, "relu", 8, "sigmoid"],
        [(torch.randn(8, 96, 1, 1), torch.zeros(8)), (torch.randn(8, 8, 1, 1), torch.zeros(8))],
        torch.rand(4, 8),
        torch.tensor([1, 0, 1, 0]),
        torch.randn(2, 4),
        similarity="log",
        epsilon=1e-4,
        preprocessing=Preprocessing((48, 48)),
    )
