"""Networks of CaBRNet, built and saved by its own code, with what they say about some images.

    .peers/bin/python scripts/build_peers.py .peers/models

Run by `make peers` in an environment of its own; tests/conversion/test_cabrnet.py converts the results.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cabrnet.archs.generic.model import CaBRNet
from cabrnet.core.utils.data import DatasetManager
from cabrnet.core.utils.save import save_checkpoint
from loguru import logger
from PIL import Image

SIZE, CLASSES = 64, ("blue", "green", "red")
CHANNELS = 24


def main(folder: Path) -> None:
    """Builds what is not there yet; a network is there when its answers are."""
    logger.remove()
    images = folder / "images"
    if not images.is_dir():
        draw_images(images)
    for name, build in NETWORKS.items():
        if not (folder / name / "answers.npz").is_file():
            torch.manual_seed(0)
            build(folder / name, images)
            print(f"built {folder / name}")


def draw_images(folder: Path) -> None:
    random = np.random.default_rng(0)
    for split, count in (("train", 6), ("test", 3)):
        for label, name in enumerate(CLASSES):
            (folder / split / name).mkdir(parents=True)
            for number in range(count):
                pixels = random.integers(0, 90, (80, 100, 3), dtype=np.uint8)
                pixels[20:50, 25:60, 2 - label] = 240
                Image.fromarray(pixels).save(folder / split / name / f"{number}.png")


def architecture(
    arch: str, layer: str, similarity: dict[str, Any] | None, add_on: bool = True
) -> dict[str, Any]:
    layers = {
        "init_mode": "PROTOPNET",
        "conv1": {"type": "Conv2d", "params": {"out_channels": CHANNELS, "kernel_size": 1}},
        "relu1": {"type": "ReLU"},
        "conv2": {"type": "Conv2d", "params": {"out_channels": CHANNELS, "kernel_size": 1}},
        "sigmoid1": {"type": "Sigmoid"},
    }
    params: dict[str, Any] = {"num_classes": len(CLASSES), "num_proto_per_class": 2}
    if add_on:
        params["num_features"] = CHANNELS
    described: dict[str, Any] = {
        "top_arch": {"module": "cabrnet.archs.protopnet.model", "name": "ProtoPNet"},
        "extractor": {"backbone": {"arch": arch, "weights": "None", "layer": layer}},
        "classifier": {
            "module": "cabrnet.archs.protopnet.decision",
            "name": "ProtoPNetClassifier",
            "params": params,
        },
    }
    if add_on:
        described["extractor"]["add_on"] = layers
    if similarity is not None:
        described["similarity"] = similarity
    return described


def data_sets(images: Path, mean: float = 0.5) -> dict[str, Any]:
    def one(split: str) -> dict[str, Any]:
        transform = {
            "resize": {"type": "Resize", "params": {"size": [SIZE, SIZE]}},
            "to_tensor": {"type": "ToTensor"},
            "normalize": {"type": "Normalize", "params": {"mean": [mean] * 3, "std": [0.25] * 3}},
        }
        return {
            "module": "torchvision.datasets",
            "name": "ImageFolder",
            "batch_size": 4,
            "shuffle": False,
            "params": {"root": str(images / split), "transform": transform},
        }

    return {"train_set": one("train"), "projection_set": one("train"), "test_set": one("test")}


def tree_architecture(similarity: dict[str, Any] | None, **params: Any) -> dict[str, Any]:
    """A ProtoTree as CaBRNet's own configuration has it: one convolution without bias, and a sigmoid."""
    convolution = {"out_channels": CHANNELS, "kernel_size": 1, "bias": False}
    described: dict[str, Any] = {
        "top_arch": {"module": "cabrnet.archs.prototree.model", "name": "ProtoTree"},
        "extractor": {
            "backbone": {"arch": "resnet18", "weights": "None", "layer": "layer4"},
            "add_on": {
                "conv1": {"type": "Conv2d", "params": convolution},
                "sigmoid1": {"type": "Sigmoid"},
            },
        },
        "classifier": {
            "module": "cabrnet.archs.prototree.decision",
            "name": "ProtoTreeClassifier",
            "params": {
                "num_classes": len(CLASSES),
                "num_features": CHANNELS,
                "leaves_init_mode": "NORMAL",
                **params,
            },
        },
    }
    if similarity is not None:
        described["similarity"] = similarity
    return described


def build(described: dict[str, Any]) -> CaBRNet:
    """A network of CaBRNet's, with batch statistics and weights that are not those of a start."""
    network = CaBRNet.build_from_config(copy.deepcopy(described))
    with torch.no_grad():
        network.train()
        network.extractor(torch.randn(8, 3, SIZE, SIZE))
        if network.extractor.add_on is not None:
            for layer in network.extractor.add_on.children():
                if isinstance(layer, torch.nn.Conv2d):
                    layer.weight.mul_(3)
        if hasattr(network.classifier, "last_layer"):
            weight = network.classifier.last_layer.weight
            weight.add_(0.05 * torch.randn_like(weight))
    return network.eval()


def write(
    folder: Path, network: CaBRNet, described: dict[str, Any], data: dict[str, Any], projection: Any = None
) -> None:
    """Saves the network by CaBRNet's own code, and its answers beside it."""
    save_checkpoint(str(folder), network, described, None, None, data, projection, 0, 0, "cpu")
    x = torch.rand(3, 3, SIZE, SIZE)
    with torch.no_grad():
        logits, more = network(x)
        # A tree gives probabilities, or their logs, and what happened at its nodes.
        distances = more if torch.is_tensor(more) else tree_distances(network, x)
    np.savez(folder / "answers.npz", x=x.numpy(), logits=logits.numpy(), distances=distances.numpy())


def tree_distances(network: CaBRNet, x: torch.Tensor) -> torch.Tensor:
    """The smallest squared distances (N, P) of a tree, by CaBRNet's own layers."""
    layer, prototypes = network.classifier.similarity_layer, network.classifier.prototypes
    return layer.distances(network.extractor(x), prototypes).flatten(2).amin(2)


def plain(folder: Path, images: Path) -> None:
    described = architecture("resnet18", "layer4", {"name": "ProtoPNetSimilarity"})
    write(folder, build(described), described, data_sets(images))


def legacy(folder: Path, images: Path) -> None:
    """Without a similarity in its description, as older versions saved it."""
    described = architecture("vgg11", "features.20", None)
    write(folder, build(described), described, data_sets(images))


def stable(folder: Path, images: Path) -> None:
    """Another epsilon, an inner layer, and no add-on layers at all."""
    similarity = {"name": "LegacyProtoPNetSimilarity", "params": {"stability_factor": 0.01}}
    described = architecture("resnet18", "layer3", similarity, add_on=False)
    write(folder, build(described), described, data_sets(images))


def dense(folder: Path, images: Path) -> None:
    described = architecture("densenet121", "features.norm5", {"name": "ProtoPNetSimilarity"})
    write(folder, build(described), described, data_sets(images))


def projected(folder: Path, images: Path) -> None:
    described, data = architecture("resnet18", "layer4", {"name": "ProtoPNetSimilarity"}), data_sets(images)
    network = build(described)
    loader = DatasetManager.get_dataloaders(data)["projection_set"]
    write(folder, network, described, data, network.project(loader, device="cpu"))


def pruned(folder: Path, images: Path) -> None:
    """Some prototypes removed by CaBRNet's own code."""
    _pruned(folder, images, disable=False)


def disabled(folder: Path, images: Path) -> None:
    """Some prototypes switched off by CaBRNet's own code."""
    _pruned(folder, images, disable=True)


def _pruned(folder: Path, images: Path, *, disable: bool) -> None:
    described = architecture("resnet18", "layer4", {"name": "LegacyProtoPNetSimilarity"})
    network = build(described)
    loader = DatasetManager.get_dataloaders(data_sets(images))["projection_set"]
    with torch.no_grad():  # one prototype of each class on a patch of it, so that it stays
        network.project(loader, device="cpu")
        network.classifier.prototypes[1::2] = 3.0
    threshold = 2
    network.prune(loader, threshold, 6, disable_pruned_prototypes=disable, device="cpu")
    write(folder, network.eval(), described, data_sets(images))


def tree(folder: Path, images: Path) -> None:
    described = tree_architecture({"name": "ProtoTreeSimilarity"}, depth=3)
    write(folder, build(described), described, data_sets(images))


def legacy_tree(folder: Path, images: Path) -> None:
    """Without a similarity in its description, as older versions saved it."""
    described = tree_architecture(None, depth=2)
    write(folder, build(described), described, data_sets(images))


def log_tree(folder: Path, images: Path) -> None:
    """With log probabilities, and the older similarity."""
    similarity = {"name": "LegacyProtoTreeSimilarity", "params": {"log_probabilities": True}}
    described = tree_architecture(similarity, depth=2, log_probabilities=True)
    write(folder, build(described), described, data_sets(images))


def projected_tree(folder: Path, images: Path) -> None:
    """Pruned and projected by CaBRNet's own code."""
    described, data = tree_architecture({"name": "ProtoTreeSimilarity"}, depth=4), data_sets(images)
    network = build(described)
    leaves = list(network.classifier.tree.leaves)
    with torch.no_grad():
        for number, leaf in enumerate(leaves):
            leaf._relative_distribution.mul_(0 if number in (0, 5, 6, 7, 12) else 5)
    network.prune(pruning_threshold=0.4)
    loader = DatasetManager.get_dataloaders(data)["projection_set"]
    write(folder, network, described, data, network.project(loader, device="cpu"))


NETWORKS = {
    one.__name__: one
    for one in (
        plain,
        legacy,
        stable,
        dense,
        projected,
        pruned,
        disabled,
        tree,
        legacy_tree,
        log_tree,
        projected_tree,
    )
}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
