"""The original ProtoPNet as its paper and its files describe it, written anew and saved as it saves them.

Independent of the package: backbones are torchvision's, run layer by layer here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torchvision
from torch import Tensor, nn


class ResNet_features(nn.Module):  # noqa: N801  (the name in the files)
    """A ResNet up to its last stage."""

    def __init__(self, name: str):
        super().__init__()
        whole = torchvision.models.get_model(name)
        for part in ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4"):
            setattr(self, part, getattr(whole, part))

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


class VGG_features(nn.Module):  # noqa: N801
    """The convolutions of a VGG."""

    def __init__(self, name: str):
        super().__init__()
        layout = {"vgg11": "A", "vgg13": "B", "vgg16": "D", "vgg19": "E"}[name.removesuffix("_bn")]
        plan = torchvision.models.vgg.cfgs[layout]  # the whole network would take seconds to start
        self.features = torchvision.models.vgg.make_layers(plan, batch_norm=name.endswith("_bn"))
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x)


class DenseNet_features(nn.Module):  # noqa: N801
    """A DenseNet up to the ReLU after its last batch norm."""

    def __init__(self, name: str):
        super().__init__()
        self.features = torchvision.models.get_model(name).features
        self.features.add_module("final_relu", nn.ReLU(inplace=True))

    def forward(self, x: Tensor) -> Tensor:
        return self.features(x)


class PPNet(nn.Module):
    """Backbone, add-on layers, prototypes of one vector, a last layer without bias."""

    def __init__(self, features: nn.Module, channels: int, options: dict[str, Any]):
        super().__init__()
        classes, count, depth = options["classes"], options["prototypes"], options["depth"]
        self.img_size = options["size"]
        self.num_prototypes, self.num_classes = count, classes
        self.epsilon = options["epsilon"]
        self.prototype_activation_function = options["similarity"]
        self.prototype_class_identity = torch.zeros(count, classes)
        for prototype in range(count):
            self.prototype_class_identity[prototype, prototype // (count // classes)] = 1
        self.features = features
        self.add_on_layers = _add_on(options["add_on"], channels, depth)
        self.prototype_vectors = nn.Parameter(torch.rand(count, depth, 1, 1))
        self.ones = nn.Parameter(torch.ones(count, depth, 1, 1), requires_grad=False)
        self.last_layer = nn.Linear(count, classes, bias=False)
        own = self.prototype_class_identity.T
        self.last_layer.weight.data.copy_(own - 0.5 * (1 - own) + 0.05 * torch.randn(classes, count))

    def min_distances(self, x: Tensor) -> Tensor:
        """The smallest squared distance of each prototype to a patch, pair by pair."""
        z = self.add_on_layers(self.features(x))
        columns = []
        for prototype in self.prototype_vectors:
            columns.append((z - prototype[None]).square().sum(1).flatten(1).min(1).values)
        return torch.stack(columns, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        distances = self.min_distances(x)
        if self.prototype_activation_function == "log":
            similar = torch.log((distances + 1) / (distances + self.epsilon))
        else:
            similar = -distances
        return self.last_layer(similar), distances


def _add_on(kind: str, channels: int, depth: int) -> nn.Sequential:
    if kind == "regular":
        return nn.Sequential(
            nn.Conv2d(channels, depth, 1), nn.ReLU(), nn.Conv2d(depth, depth, 1), nn.Sigmoid()
        )
    layers: list[nn.Module] = []  # halves the channels until they are those of the prototypes
    while channels > depth or not layers:
        narrower = max(depth, channels // 2)
        layers += [nn.Conv2d(channels, narrower, 1), nn.ReLU(), nn.Conv2d(narrower, narrower, 1)]
        layers.append(nn.ReLU() if narrower > depth else nn.Sigmoid())
        channels //= 2
    return nn.Sequential(*layers)


FAMILIES = {"resnet": ResNet_features, "vgg": VGG_features, "densenet": DenseNet_features}
DEFAULTS: dict[str, Any] = {
    "add_on": "regular",
    "similarity": "log",
    "epsilon": 1e-4,
    "size": 64,
    "classes": 3,
    "prototypes": 6,
    "depth": 32,
}


def original(name: str = "resnet18", **options: Any) -> PPNet:
    """A network in evaluation mode, with batch statistics that are not those of a start."""
    torch.manual_seed(0)
    family = next(kind for start, kind in FAMILIES.items() if name.startswith(start))
    features = family(name)
    settings = DEFAULTS | options
    with torch.no_grad():
        features.train()(torch.randn(4, 3, 64, 64))
        channels = features.eval()(torch.zeros(1, 3, 64, 64)).shape[1]
    network = PPNet(features, channels, settings).eval()
    with torch.no_grad():  # so that latent values differ from place to place
        for layer in network.add_on_layers:
            if isinstance(layer, nn.Conv2d):
                layer.weight.mul_(3)
    return network


@contextmanager
def as_its_program() -> Iterator[None]:
    """The classes under the names of the original program's files, as long as something is saved."""
    homes = {"model": [PPNet]}
    homes |= {f"{start}_features": [kind] for start, kind in FAMILIES.items()}
    before = {kind: kind.__module__ for kinds in homes.values() for kind in kinds}
    for home, kinds in homes.items():
        module = ModuleType(home)
        for kind in kinds:
            setattr(module, kind.__name__, kind)
            kind.__module__ = home
        sys.modules[home] = module
    try:
        yield
    finally:
        for kind, home in before.items():
            kind.__module__ = home
        for home in homes:
            del sys.modules[home]


def save_original(network: PPNet, path: Path, *, whole: bool = True, zipped: bool = True) -> Path:
    """Writes the network as a whole, or its state dict, in torch's new or old format."""
    with as_its_program():
        content = network if whole else network.state_dict()
        torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path
