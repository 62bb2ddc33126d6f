"""Checkpoints of the original ProtoPNet: written by an independent implementation, converted, compared."""

from __future__ import annotations

import argparse
import sys
import types
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protopfaith.conversion import convert
from protopfaith.conversion.formats import Asked
from protopfaith.conversion.protopnet import read_protopnet
from protopfaith.errors import ProtoPFaithError
from tests.conversion.originals import as_its_program, original, save_original

CASES: dict[str, dict[str, Any]] = {
    "resnet18": {},
    "resnet34": {"add_on": "bottleneck", "similarity": "linear"},
    "vgg11": {"epsilon": 1e-3},
    "vgg11_bn": {"add_on": "bottleneck"},
    "densenet121": {"similarity": "linear"},
}


@pytest.mark.parametrize(
    ("name", "zipped"), [*((name, True) for name in CASES), ("resnet18", False), ("densenet121", False)]
)
def test_a_whole_module_says_the_same(name: str, zipped: bool, tmp_path: Path) -> None:
    network = original(name, **CASES[name])
    path = save_original(network, tmp_path / "100push0.7.pth", zipped=zipped)
    found = convert(path, tmp_path / "run")
    assert_same(network, found.run.model())
    assert found.run.preprocessing().size == (64, 64)


@pytest.mark.parametrize("name", ["resnet18", "vgg11"])
def test_a_state_dict_says_the_same_where_the_caller_says_what_it_lacks(name: str, tmp_path: Path) -> None:
    options = CASES[name]
    network = original(name, **options)
    path = save_original(network, tmp_path / "state.pth", whole=False)
    found = convert(path, tmp_path / "run", size=64, epsilon=options.get("epsilon"))
    assert_same(network, found.run.model())
    assert any("similarity" in note for note in found.network.notes)
    assert any("sigmoid" in note for note in found.network.notes)
    assert any("pooling" in note for note in found.network.notes) == name.startswith("vgg")


def assert_same(network: Any, model: Any) -> None:
    x = torch.rand(3, 3, 64, 64)
    with torch.no_grad():
        logits, distances = network(x)
        found = model.distances(x)
        assert torch.allclose(found, distances, rtol=1e-5, atol=1e-5 * float(distances.abs().max()))
        assert torch.allclose(model(x), logits, rtol=1e-5, atol=1e-5 * float(logits.abs().max()))
    assert float(distances.std(0).min()) > 1e-4  # else the comparison would say little


def test_prototypes_in_any_order_are_sorted_by_class(tmp_path: Path) -> None:
    network = original()
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    with torch.no_grad():
        network.prototype_vectors.copy_(network.prototype_vectors[order])
        network.last_layer.weight.copy_(network.last_layer.weight[:, order])
        network.prototype_class_identity = network.prototype_class_identity[order]
    model = convert(save_original(network, tmp_path / "a.pth"), tmp_path / "run").run.model()
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        logits, distances = network(x)
        assert torch.allclose(model(x), logits, atol=1e-5)
        by_class = network.prototype_class_identity.argmax(1).argsort(stable=True)
        assert torch.allclose(model.distances(x), distances[:, by_class], atol=1e-5)


def test_a_pruned_network_keeps_its_unequal_numbers(tmp_path: Path) -> None:
    network = original()
    keep = torch.tensor([0, 2, 3, 5])
    network.prototype_vectors.data = network.prototype_vectors.data[keep]
    network.last_layer.weight.data = network.last_layer.weight.data[:, keep]
    network.prototype_class_identity = network.prototype_class_identity[keep]
    model = convert(save_original(network, tmp_path / "a.pth"), tmp_path / "run").run.model()
    assert model.prototype_classes.tolist() == [0, 1, 1, 2]
    with torch.no_grad():
        assert torch.allclose(
            model(torch.zeros(1, 3, 64, 64)), network(torch.zeros(1, 3, 64, 64))[0], atol=1e-5
        )


def test_data_parallel_and_wrapped_state_dicts_are_read(tmp_path: Path) -> None:
    network = original()
    state = {f"module.{key}": value for key, value in network.state_dict().items()}
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "a.pth")
    assert_same(network, convert(tmp_path / "a.pth", tmp_path / "run").run.model())


def _beside(state: Any, value: Any) -> Any:
    return {"state_dict": state, "more": value}


STRANGE: dict[str, Callable[[Any], Any]] = {
    "under another name": lambda net: {"net": net.state_dict(), "epoch": 3},
    "in a dictionary of a dictionary": lambda net: {"checkpoint": {"weights": net.state_dict()}},
    "compiled": lambda net: {f"_orig_mod.{key}": value for key, value in net.state_dict().items()},
    "in somebody's module": lambda net: {
        "state_dict": {f"ppnet.{key}": value for key, value in net.state_dict().items()}
        | {"criterion.weight": torch.ones(3)}
    },
    "half": lambda net: {
        key: value.half() if value.is_floating_point() else value for key, value in net.state_dict().items()
    },
    "a backbone as a whole": lambda net: {**net.state_dict(), "features.fc.weight": torch.zeros(10, 512)},
    "a bias of zeros": lambda net: {**net.state_dict(), "last_layer.bias": torch.zeros(3)},
    "prototypes as a matrix": lambda net: {
        **net.state_dict(), "prototype_vectors": net.prototype_vectors.detach()[:, :, 0, 0]
    },
    "a number of NumPy beside": lambda net: _beside(net.state_dict(), np.float64(0.7)),
    "an array beside": lambda net: _beside(net.state_dict(), np.arange(3.0)),
    "arguments beside": lambda net: _beside(net.state_dict(), argparse.Namespace(data=Path("x"), rate=0.1)),
    "a log beside": lambda net: _beside(net.state_dict(), defaultdict(list, {"loss": [1.0]})),
    "a date beside": lambda net: _beside(net.state_dict(), datetime(2024, 1, 2)),
    "a function beside": lambda net: _beside(net.state_dict(), partial(torch.nn.BatchNorm2d, eps=1e-3)),
    "the module in a dictionary": lambda net: {"network": net, "accuracy": np.float32(0.7)},
    "the module in parallel": torch.nn.DataParallel,
}  # fmt: skip


@pytest.fixture(scope="module")
def usual() -> Any:
    return original()


@pytest.mark.parametrize("name", STRANGE)
def test_files_as_strangers_have_them_are_read(name: str, usual: Any, tmp_path: Path) -> None:
    with as_its_program():
        torch.save(STRANGE[name](usual), tmp_path / "net.pth")
    found = read_protopnet(tmp_path / "net.pth", Asked(size=64))
    assert found.encoder == "resnet18"
    assert torch.allclose(found.prototypes, usual.prototype_vectors.flatten(1), atol=1e-3)
    assert torch.allclose(found.weights, usual.last_layer.weight, atol=1e-3)
    assert found.layers == [32, "relu", 32, "sigmoid"]


def test_a_path_is_left_alone_whichever_python_wrote_it(
    usual: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: Any = types.ModuleType("pathlib._local")  # where Python 3.13 says that paths come from
    late.PosixPath = type("PosixPath", (), {"__module__": late.__name__})
    late.PosixPath.__reduce__ = lambda path: (late.PosixPath, ("x",))
    monkeypatch.setitem(sys.modules, late.__name__, late)
    torch.save(_beside(usual.state_dict(), late.PosixPath()), tmp_path / "net.pth")
    assert read_protopnet(tmp_path / "net.pth", Asked(size=64)).encoder == "resnet18"


def test_a_network_that_is_not_finite_is_one_sentence(usual: Any, tmp_path: Path) -> None:
    state = {**usual.state_dict(), "prototype_vectors": torch.full((6, 32, 1, 1), torch.nan)}
    torch.save(state, tmp_path / "net.pth")
    with pytest.raises(ProtoPFaithError, match="not finite"):
        convert(tmp_path / "net.pth", tmp_path / "run", size=64)
    assert not (tmp_path / "run").exists()


def test_an_add_on_layer_without_weights_is_one_sentence(usual: Any, tmp_path: Path) -> None:
    state = usual.state_dict()
    del state["add_on_layers.2.weight"]
    torch.save(state, tmp_path / "net.pth")
    with pytest.raises(ProtoPFaithError, match=r"add-on layer '2' in .*net\.pth has no weights"):
        read_protopnet(tmp_path / "net.pth", Asked(size=64))


def test_what_contains_itself_is_one_sentence(tmp_path: Path) -> None:
    round_and_round: dict[str, Any] = {}
    round_and_round["model"] = round_and_round
    torch.save(round_and_round, tmp_path / "net.pth")
    with pytest.raises(ProtoPFaithError, match="contains itself"):
        read_protopnet(tmp_path / "net.pth", Asked())


def test_vgg_without_its_last_pooling_is_cut_there(tmp_path: Path) -> None:
    network = original("vgg11")
    network.features.features = network.features.features[:-1]
    found = convert(save_original(network, tmp_path / "a.pth"), tmp_path / "run")
    assert found.network.encoder == "vgg11@features.19"
    assert_same(network, found.run.model())


def test_a_state_dict_of_such_a_vgg_is_cut_where_the_caller_says(tmp_path: Path) -> None:
    network = original("vgg11")
    network.features.features = network.features.features[:-1]
    torch.save(network.state_dict(), tmp_path / "a.pth")
    assumed = read_protopnet(tmp_path / "a.pth", Asked())
    assert assumed.encoder == "vgg11"
    assert any("--encoder vgg11@features.19" in note for note in assumed.notes)
    found = convert(tmp_path / "a.pth", tmp_path / "run", encoder="vgg11@features.19")
    assert not any("pooling" in note for note in found.network.notes)
    assert_same(network, found.run.model())


@pytest.mark.parametrize("encoder", ["vgg16", "vgg11@features.9", "vgg11@nothing", "", "@", "resnet50_v1"])
def test_an_encoder_that_is_not_the_file_s_is_one_sentence(encoder: str, tmp_path: Path) -> None:
    torch.save(original("vgg11").state_dict(), tmp_path / "a.pth")
    with pytest.raises(ProtoPFaithError, match=r"those of vgg11; name it as vgg11@features\.19"):
        read_protopnet(tmp_path / "a.pth", Asked(encoder=encoder))


def _larger(state: dict[str, Any]) -> None:
    state["prototype_vectors"] = torch.rand(6, 32, 2, 2)


def _ambiguous(state: dict[str, Any]) -> None:
    state["last_layer.weight"][:, 4] = torch.tensor([1.0, 0.9, 0.0])


def _empty_class(state: dict[str, Any]) -> None:
    state["last_layer.weight"][1, :] -= 5
    state["last_layer.weight"][0, 2:4] = 3.0


def _bias(state: dict[str, Any]) -> None:
    state["last_layer.bias"] = torch.ones(3)


def _other_encoder(state: dict[str, Any]) -> None:
    del state["features.layer4.0.conv1.weight"]


def _no_prototypes(state: dict[str, Any]) -> None:
    del state["prototype_vectors"]


def _wide_kernel(state: dict[str, Any]) -> None:
    state["add_on_layers.0.weight"] = torch.zeros(32, 512, 3, 3)


def _other_count(state: dict[str, Any]) -> None:
    state["last_layer.weight"] = torch.eye(3, 7)


WRONG = {
    "patches of 2 x 2": _larger,
    "class of prototype 4": _ambiguous,
    "have no prototype": _empty_class,
    "has a bias": _bias,
    "none of torchvision's VGG, ResNet or DenseNet": _other_encoder,
    "is no ProtoPNet": _no_prototypes,
    "only 1 x 1 convolutions": _wide_kernel,
    "does not fit": _other_count,
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_converted_is_one_sentence(words: str, tmp_path: Path) -> None:
    state = dict(original().state_dict())
    WRONG[words](state)
    torch.save(state, tmp_path / "a.pth")
    with pytest.raises(ProtoPFaithError, match=words) as raised:
        convert(tmp_path / "a.pth", tmp_path / "run")
    assert str(raised.value).count(". ") == 0
    assert not (tmp_path / "run").exists()


def test_a_similarity_of_ones_own_is_refused(tmp_path: Path) -> None:
    network = original(similarity="cosine")
    with pytest.raises(ProtoPFaithError, match="is 'cosine'; log and linear"):
        convert(save_original(network, tmp_path / "a.pth"), tmp_path / "run")


def test_an_unknown_layer_between_is_refused(tmp_path: Path) -> None:
    network = original()
    network.add_on_layers[1] = torch.nn.Tanh()
    with pytest.raises(ProtoPFaithError, match="have a Tanh"):
        convert(save_original(network, tmp_path / "a.pth"), tmp_path / "run")


def test_strides_in_the_first_convolution_are_seen(tmp_path: Path) -> None:
    network = original("resnet50")
    for stage in (network.features.layer2, network.features.layer3, network.features.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    found = convert(save_original(network, tmp_path / "a.pth"), tmp_path / "run")
    assert found.network.encoder == "resnet50_v1"
    assert_same(network, found.run.model())
