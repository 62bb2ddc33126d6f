"""Trees of CaBRNet, written by hand: what is read, and what is refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from protopfaith.conversion import convert
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoTree, build_encoder
from tests.conversion.test_cabrnet import prototypes_of

CHANNELS, CLASSES = 12, 3


def leaf(number: int) -> dict[str, Any]:
    return {"module": "LeafNode", "node_id": f"leaf_{number}", "num_classes": CLASSES}


def node(number: int, prototype: int, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    found = {"module": "BinaryNode", "node_id": f"branch_{number}", "proto_idxs": [prototype]}
    return {**found, "log_probabilities": False, "children": [left, right]}


def pruned() -> dict[str, Any]:
    """A tree that lost a node: its right side came up in its place."""
    return node(0, 0, leaf(1), node(4, 2, leaf(5), leaf(6)))


def leaves_of(described: dict[str, Any], name: str = "classifier.tree.") -> list[str]:
    if described["module"] == "LeafNode":
        return [f"{name}_relative_distribution"]
    start = f"{name}{described['node_id']}_child_"
    sides = zip(("nsim", "sim"), described["children"], strict=True)
    return [one for side, child in sides for one in leaves_of(child, f"{start}{side}.")]


def write(folder: Path, **changes: Any) -> dict[str, Any]:
    """A directory as CaBRNet leaves it; returns its state dict."""
    torch.manual_seed(0)
    folder.mkdir()
    architecture = {
        "top_arch": {"module": "cabrnet.archs.prototree.model", "name": "ProtoTree"},
        "extractor": {
            "backbone": {"arch": "resnet18", "weights": "None", "layer": "layer4"},
            "add_on": {"conv1": {"type": "Conv2d"}, "sigmoid1": {"type": "Sigmoid"}},
        },
        "classifier": {"name": "ProtoTreeClassifier", "params": {}},
        "similarity": {"name": "ProtoTreeSimilarity"},
    }
    architecture |= changes.get("architecture", {})
    encoder = build_encoder("resnet18").state_dict()
    state: dict[str, Any] = {f"extractor.convnet.{key}": value for key, value in encoder.items()}
    state["extractor.add_on.conv1.weight"] = torch.randn(CHANNELS, 512, 1, 1) / 10
    state["classifier.prototypes"] = torch.rand(4, CHANNELS, 1, 1)
    state |= {name: torch.randn(1, CLASSES) * 3 for name in leaves_of(pruned())}
    state["_extra_state"] = pruned()
    changes.get("state", lambda _: None)(state)
    torch.save(state, folder / "model_state.pth")
    (folder / "model_arch.yml").write_text(yaml.safe_dump(architecture))
    return state


def test_a_pruned_tree_keeps_its_shape_and_its_leaves(tmp_path: Path) -> None:
    state = write(tmp_path / "net")
    found = convert(tmp_path / "net", tmp_path / "run", size=64)
    model = found.run.model()
    assert isinstance(model, ProtoTree)
    assert model.branches.children == ((-1, 1), (-2, -3))
    for place, name in enumerate(leaves_of(pruned())):
        assert torch.allclose(model.leaves[place], state[name][0])
    nodes = prototypes_of(pruned())
    assert torch.allclose(model.prototypes, state["classifier.prototypes"].flatten(1)[nodes])
    assert "2 disabled prototypes are left out." in found.network.notes
    assert "Tree: 2 nodes, 3 leaves, depth 2" in found.lines()
    assert found.run.recipe().model.family == "prototree"
    assert max(found.check.distances, found.check.logits) < 1e-4


def without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda state: state.pop(key)


def with_tree(tree: Any) -> Callable[[dict[str, Any]], None]:
    return lambda state: state.__setitem__("_extra_state", tree)


def too_deep(state: dict[str, Any]) -> None:
    tree = leaf(0)
    for number in range(80):
        tree = node(number, number, leaf(number), tree)
    state |= {name: torch.randn(1, CLASSES) for name in leaves_of(tree)}
    state["_extra_state"] = tree


WRONG: dict[str, Callable[[dict[str, Any]], None]] = {
    "says no tree": without("_extra_state"),
    "lacks the tensor classifier.tree": without(leaves_of(pruned())[1]),
    "lacks classifier.prototypes": without("classifier.prototypes"),
    "says no tree in": with_tree(["a", "tree"]),
    "of the kind 'ComparativeNode'": with_tree(node(0, 0, leaf(1), {"module": "ComparativeNode"})),
    "without two children": with_tree({**pruned(), "children": [leaf(0)]}),
    "without its one prototype": with_tree({**pruned(), "proto_idxs": [0, 1]}),
    "that are not there": with_tree({**pruned(), "proto_idxs": [40]}),
    "nodes with the same prototype": with_tree({**pruned(), "proto_idxs": [2]}),
    "too large": too_deep,
}


@pytest.mark.parametrize("words", WRONG)
def test_a_damaged_tree_is_one_sentence(words: str, tmp_path: Path) -> None:
    write(tmp_path / "net", state=WRONG[words])
    with pytest.raises(ProtoPFaithError, match=words):
        convert(tmp_path / "net", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("similarity", "words"),
    [
        ({"name": "CosineSimilarity"}, "CosineSimilarity"),
        ({"name": "ProtoTreeSimilarity", "params": {"stability_factor": 0.1}}, "stability_factor"),
        ({"name": "ProtoTreeSimilarity", "params": {"stability_factor": "x"}}, "stability_factor"),
        ({"name": "ProtoTreeSimilarity", "params": {"log_probabilities": True}}, "log_probabilities"),
    ],
)
def test_another_similarity_is_refused(similarity: dict[str, Any], words: str, tmp_path: Path) -> None:
    write(tmp_path / "net", architecture={"similarity": similarity})
    with pytest.raises(ProtoPFaithError, match=words):
        convert(tmp_path / "net", tmp_path / "run")


@pytest.mark.parametrize("asked", [{"similarity": "log"}, {"epsilon": 0.1}])
def test_a_tree_takes_no_similarity_from_the_caller(asked: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path / "net")
    with pytest.raises(ProtoPFaithError, match="leave out --similarity"):
        convert(tmp_path / "net", tmp_path / "run", **asked)
