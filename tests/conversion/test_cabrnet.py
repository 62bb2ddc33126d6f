"""Directories of CaBRNet: those of its own code where `make peers` built them, and hand-written ones."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from protopfaith.conversion import convert
from protopfaith.conversion.cabrnet import read_cabrnet
from protopfaith.conversion.formats import Asked
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoTree
from tests.conversion.originals import PPNet, original

PEERS = Path(os.environ.get("PROTOPFAITH_PEERS", Path(__file__).parents[2] / ".peers" / "models"))
NETWORKS = ("plain", "legacy", "stable", "dense", "projected", "pruned", "disabled")
TREES = ("tree", "legacy_tree", "log_tree", "projected_tree")


@pytest.mark.parametrize("name", NETWORKS)
def test_cabrnets_own_networks_say_the_same(name: str, tmp_path: Path) -> None:
    if not (PEERS / name / "answers.npz").is_file():
        pytest.skip("CaBRNet's own networks are not there; make peers builds them")
    found = convert(PEERS / name, tmp_path / "run")
    model, answers = found.run.model(), np.load(PEERS / name / "answers.npz")
    state = torch.load(PEERS / name / "model_state.pth", weights_only=True)
    kept = state["classifier.proto_class_map"].bool().any(1)  # some may be switched off
    x, logits, distances = (torch.from_numpy(answers[key]) for key in ("x", "logits", "distances"))
    with torch.no_grad():
        rounding = 1e-6  # logarithms of ratios near one, whatever is left of them
        assert torch.allclose(model(x), logits, rtol=1e-5, atol=1e-5 * float(logits.abs().max()) + rounding)
        expected = distances[:, kept]
        assert torch.allclose(model.distances(x), expected, rtol=1e-5, atol=1e-5 * float(expected.max()))
    assert found.run.preprocessing().mean == (0.5, 0.5, 0.5)
    assert found.run.preprocessing().size == (64, 64)


@pytest.mark.parametrize("name", TREES)
def test_cabrnets_own_trees_say_the_same(name: str, tmp_path: Path) -> None:
    if not (PEERS / name / "answers.npz").is_file():
        pytest.skip("CaBRNet's own networks are not there; make peers builds them")
    found = convert(PEERS / name, tmp_path / "run", root=PEERS / "images")
    model, answers = found.run.model(), np.load(PEERS / name / "answers.npz")
    assert isinstance(model, ProtoTree)
    x, outputs, distances = (torch.from_numpy(answers[key]) for key in ("x", "logits", "distances"))
    state = torch.load(PEERS / name / "model_state.pth", weights_only=False)
    nodes = prototypes_of(state["_extra_state"])
    with torch.no_grad():
        expected = outputs.exp() if name == "log_tree" else outputs
        assert torch.allclose(model(x).exp(), expected, atol=1e-5)
        own = distances[:, nodes]
        assert torch.allclose(model.distances(x), own, rtol=1e-5, atol=1e-5 * float(own.max()))
    assert any(line.startswith("Tree: ") for line in found.lines())
    assert found.sources is not None
    if name == "projected_tree":
        assert len(nodes) < len(state["classifier.prototypes"])
        assert found.sources.on_patch == found.sources.by_index == len(nodes)


def prototypes_of(described: dict[str, Any]) -> list[int]:
    """The prototypes of a tree's nodes, each before what is below it."""
    if described["module"] == "LeafNode":
        return []
    return [*described["proto_idxs"], *(p for child in described["children"] for p in prototypes_of(child))]


@pytest.mark.parametrize("images", [True, False], ids=["by number", "by patch"])
def test_cabrnets_own_projection_is_found(images: bool, tmp_path: Path) -> None:
    folder = PEERS / "projected"
    if not (folder / "answers.npz").is_file():
        pytest.skip("CaBRNet's own networks are not there; make peers builds them")
    if not images:
        parts = ("model_arch.yml", "model_state.pth", "dataset.yml")
        (tmp_path / "copy").mkdir()
        for part in parts:
            (tmp_path / "copy" / part).write_bytes((folder / part).read_bytes())
        folder = tmp_path / "copy"
    found = convert(folder, tmp_path / "run", root=PEERS / "images")
    assert found.sources is not None
    assert found.sources.on_patch == 6
    assert (found.sources.by_index == 6) is images


ARCHITECTURE: dict[str, Any] = {
    "top_arch": {"module": "cabrnet.archs.protopnet.model", "name": "ProtoPNet"},
    "extractor": {
        "backbone": {"arch": "resnet18", "weights": "None"},
        "convnet": {
            "source_layer": "layer4",
            "add_on": {
                "conv1": {"type": "Conv2d", "params": {"out_channels": 32, "kernel_size": 1}},
                "relu1": {"type": "ReLU"},
                "conv2": {"type": "Conv2d", "params": {"out_channels": 32, "kernel_size": 1}},
                "sigmoid1": {"type": "Sigmoid"},
            },
        },
    },
    "classifier": {"module": "cabrnet.archs.protopnet.decision", "name": "ProtoPNetClassifier", "params": {}},
    "similarity": {"name": "ProtoPNetSimilarity", "params": {"stability_factor": 1e-4}},
}
RENAMED = {
    "features.": "extractor.convnet.",
    "add_on_layers.0": "extractor.add_on.conv1",
    "add_on_layers.2": "extractor.add_on.conv2",
    "prototype_vectors": "classifier.prototypes",
    "last_layer": "classifier.last_layer",
}


def write(folder: Path, network: PPNet, architecture: dict[str, Any]) -> dict[str, Any]:
    """A directory as CaBRNet would leave it for this network; returns its state dict."""
    folder.mkdir(exist_ok=True)
    state = {}
    for key, value in network.state_dict().items():
        start = next((start for start in RENAMED if key.startswith(start)), None)
        if start is not None:
            state[key.replace(start, RENAMED[start])] = value
    state["classifier.proto_class_map"] = network.prototype_class_identity
    torch.save(state, folder / "model_state.pth")
    (folder / "model_arch.yml").write_text(yaml.safe_dump(architecture, sort_keys=False))
    return state


def test_a_directory_says_the_same(tmp_path: Path) -> None:
    network = original()
    write(tmp_path / "net", network, ARCHITECTURE)
    found = convert(tmp_path / "net", tmp_path / "run", size=64)
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        logits, distances = network(x)
        assert torch.allclose(found.run.model()(x), logits, atol=1e-5)
        assert torch.allclose(found.run.model().distances(x), distances, atol=1e-5)
    assert found.network.encoder == "resnet18"
    assert any("dataset.yml" in note for note in found.network.notes)


def changed(*path: str, value: Any) -> dict[str, Any]:
    architecture = copy.deepcopy(ARCHITECTURE)
    place = architecture
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return architecture


WRONG = {
    "only ProtoPNet and ProtoTree can": changed("classifier", "name", value="ProtoPoolClassifier"),
    "no such layer": changed("extractor", "convnet", "source_layer", value="layer9"),
    "no such layer on": changed("extractor", "backbone", "arch", value="alexnet50"),
    "do not fit the backbone": changed("extractor", "backbone", "arch", value="resnet34"),
    "several pipelines": changed("extractor", "backbone", "postprocess", value={"stride_divider": {}}),
    "CosineSimilarity": changed("similarity", "name", value="CosineSimilarity"),
    "is 'Tanh'": changed("extractor", "convnet", "add_on", "relu1", value={"type": "Tanh"}),
    r"'conv1' of .* is \['Conv2d'\]": changed(
        "extractor", "convnet", "add_on", "conv1", value={"type": ["Conv2d"]}
    ),
    r"'relu1' of .* is \{\}": changed("extractor", "convnet", "add_on", "relu1", value={"type": {}}),
    r"'conv2' of .* is \[1\]": changed("extractor", "convnet", "add_on", "conv2", value=[1]),
    "would fit the layers around it": changed("extractor", "convnet", "add_on", "conv1", value="ReLU"),
    "no section 'classifier'": changed("classifier", value=None),
    "no number": changed("similarity", "params", value={"stability_factor": "small"}),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_converted_is_one_sentence(words: str, tmp_path: Path) -> None:
    write(tmp_path / "net", original(), WRONG[words])
    with pytest.raises(ProtoPFaithError, match=words):
        convert(tmp_path / "net", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["model_arch.yml", "dataset.yml", "projection_info.csv"])
def test_damaged_files_are_one_sentence(name: str, tmp_path: Path) -> None:
    write(tmp_path / "net", original(), ARCHITECTURE)
    for content in (b"- 1\n- 2\n", b"\xff\xfe\x00", b"a: [", b"proto_idx,img_idx,h,w\nx,y,z,1\n"):
        (tmp_path / "net" / name).write_bytes(content)
        with pytest.raises(ProtoPFaithError, match=name):
            convert(tmp_path / "net", tmp_path / "run")


def test_transforms_that_cannot_be_repeated_are_told(tmp_path: Path) -> None:
    write(tmp_path / "net", original(), ARCHITECTURE)
    transform = [
        {
            "type": "Compose",
            "transforms": [{"type": "Resize", "params": {"size": 64}}, {"type": "CenterCrop"}],
        },
        {"type": "ToTensor"},
    ]
    data = {"test_set": {"params": {"transform": transform}}}
    (tmp_path / "net" / "dataset.yml").write_text(yaml.safe_dump(data))
    notes = " ".join(convert(tmp_path / "net", tmp_path / "run").network.notes)
    assert "kept their aspect" in notes
    assert "'CenterCrop' of dataset.yml is left out" in notes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose state dict tests replace."""
    found = tmp_path_factory.mktemp("cabrnet") / "net"
    write(found, original(), ARCHITECTURE)
    return found


@pytest.mark.parametrize(
    "step",
    [
        {"type": "Resize", "params": "64"},
        {"type": "Resize", "params": {"size": "large"}},
        {"type": "Normalize", "params": {"mean": 0.5}},
        {"type": "Normalize", "params": {"std": [0, 0, 0]}},
    ],
)
def test_transforms_that_make_no_sense_are_one_sentence(step: Any, folder: Path, tmp_path: Path) -> None:
    (copy_of(folder, tmp_path)).symlink_to(folder / "model_state.pth")
    data = {"test_set": {"params": {"transform": [step]}}}
    (tmp_path / "net" / "dataset.yml").write_text(yaml.safe_dump(data))
    with pytest.raises(ProtoPFaithError, match=r"dataset\.yml"):
        read_cabrnet(tmp_path / "net", Asked())


CONVOLUTION, MEMBERSHIP = "extractor.add_on.conv1", "classifier.proto_class_map"
ODD: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "cut": lambda values: values[:-1],
    "doubled": lambda values: torch.cat([values, values]),
    "empty": lambda _: torch.zeros(0),
    "a number": lambda _: torch.tensor(1.0),
    "with another dimension": lambda values: values[None],
}


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_convolution_of_another_shape_is_one_sentence(part: str, folder: Path, tmp_path: Path) -> None:
    state = torch.load(folder / "model_state.pth", weights_only=True)
    copied = copy_of(folder, tmp_path)
    for change in ODD.values():
        torch.save({**state, f"{CONVOLUTION}.{part}": change(state[f"{CONVOLUTION}.{part}"])}, copied)
        with pytest.raises(ProtoPFaithError, match=r"use another copy of it|can be converted"):
            convert(copied.parent, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def copy_of(folder: Path, place: Path) -> Path:
    """The description alone, in a folder of its own; returns where the state dict belongs."""
    (place / "net").mkdir()
    (place / "net" / "model_arch.yml").write_bytes((folder / "model_arch.yml").read_bytes())
    return place / "net" / "model_state.pth"


def test_classes_of_prototypes_may_be_truth_values(folder: Path, tmp_path: Path) -> None:
    state = torch.load(folder / "model_state.pth", weights_only=True)
    torch.save({**state, MEMBERSHIP: state[MEMBERSHIP].bool()}, copy_of(folder, tmp_path))
    found = read_cabrnet(tmp_path / "net", Asked(size=64))
    assert found.owners.tolist() == state[MEMBERSHIP].argmax(1).tolist()


def test_a_cell_that_never_ends_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    torch.save(torch.load(folder / "model_state.pth", weights_only=True), copy_of(folder, tmp_path))
    (tmp_path / "net" / "projection_info.csv").write_text(f"proto_idx,img_idx,h,w\n{'1' * 200_000},1,1,1\n")
    with pytest.raises(ProtoPFaithError, match="projection_info"):
        convert(tmp_path / "net", tmp_path / "run")


def test_its_encoder_is_said_by_the_directory_alone(folder: Path) -> None:
    with pytest.raises(ProtoPFaithError, match=r"leave --encoder out"):
        read_cabrnet(folder, Asked(encoder="resnet18"))
