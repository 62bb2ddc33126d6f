"""A ProtoTree is the mixture that a walk through it gives."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import NO_CLASS, ProtoTree, load, save

IMAGE = (3, 48, 48)


@pytest.fixture
def tree() -> ProtoTree:
    torch.manual_seed(0)
    model = ProtoTree("small", ["cat", "dog", "eel"], depth=3, prototype_channels=8).eval()
    model.leaves.data.normal_(std=4)
    return model


@torch.no_grad()
def mixture(tree: ProtoTree, distances: Tensor) -> Tensor:
    """The class probabilities of one image, node by node."""

    def below(place: int) -> Tensor:
        if place < 0:
            return tree.leaves[-1 - place].double().softmax(0)
        right = math.exp(-math.sqrt(float(distances[place])))
        one, two = tree.branches.children[place]
        return (1 - right) * below(one) + right * below(two)

    return below(0)


def test_logits_are_log_probabilities_of_the_mixture(tree: ProtoTree) -> None:
    x = torch.rand(4, *IMAGE)
    with torch.no_grad():
        distances, logits = tree.distances(x), tree(x)
    expected = torch.stack([mixture(tree, row) for row in distances]).log()
    assert torch.allclose(logits.double(), expected, atol=1e-5)
    assert torch.allclose(logits.exp().sum(1), torch.ones(4), atol=1e-5)


def test_a_class_that_no_leaf_knows_has_a_finite_log_probability(tree: ProtoTree) -> None:
    tree.leaves.data.zero_()
    tree.leaves.data[:, 0] = 500.0
    with torch.no_grad():
        logits = tree(torch.rand(2, *IMAGE))
    assert bool(torch.isfinite(logits).all())
    assert torch.allclose(logits[:, 1], torch.tensor(-500.0), atol=1e-2)


def test_gradients_are_finite_also_at_distance_zero(tree: ProtoTree) -> None:
    distances = torch.zeros(2, 7, requires_grad=True)
    tree.logits(distances)[:, 0].sum().backward()
    assert distances.grad is not None
    x = torch.rand(2, *IMAGE)
    tree(x)[:, 1].sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in tree.parameters() if p.grad is not None)


def test_the_route_goes_to_the_more_probable_side_and_its_logs_add_up(tree: ProtoTree) -> None:
    with torch.no_grad():
        distances = tree.distances(torch.rand(5, *IMAGE))
        ways = tree.leaf_log_probabilities(distances)
    for row, way in zip(distances, ways, strict=True):
        route = tree.route(row)
        assert route.turns[0].prototype == 0
        assert all(turn.probability >= 0.5 for turn in route.turns)
        assert sum(turn.log_probability for turn in route.turns) == pytest.approx(
            float(way[route.leaf]), abs=1e-5
        )
        assert route.log_probability == pytest.approx(float(way[route.leaf]), abs=1e-5)
        assert torch.allclose(
            route.leaf_probabilities, tree.leaves[route.leaf].double().softmax(0), atol=1e-6
        )


def test_pruned_leaves_pass_images_on_and_finishing_changes_nothing(tree: ProtoTree) -> None:
    tree.leaves.data[[0, 1, 4]] = 0.01
    assert tree.prune_leaves(0.05) == 3
    assert tree.prune_leaves(0.05) == 0
    x = torch.rand(3, *IMAGE)
    finished = tree.finished()
    assert len(finished.leaves) == 5
    assert len(finished.prototypes) == 4
    with torch.no_grad():
        assert torch.allclose(finished(x), tree(x), atol=1e-6)
        assert torch.allclose(tree(x).exp().sum(1), torch.ones(3), atol=1e-5)
        before, after = tree.route(tree.distances(x)[0]), finished.route(finished.distances(x)[0])
    probabilities = [turn.probability for turn in after.turns]
    assert [turn.probability for turn in before.turns] == pytest.approx(probabilities, abs=1e-5)


def test_one_leaf_always_stays(tree: ProtoTree) -> None:
    tree.leaves.data.zero_()
    tree.leaves.data[5, 2] = 0.1
    assert tree.prune_leaves(0.5) == 7
    x = torch.rand(2, *IMAGE)
    with torch.no_grad():
        assert torch.allclose(tree(x)[0].exp(), tree.leaves[5].softmax(0))
        assert torch.allclose(tree.finished()(x), tree(x))


def test_prototypes_belong_to_no_class(tree: ProtoTree) -> None:
    assert bool((tree.prototype_classes == NO_CLASS).all())
    assert tree.readout() is None
    with pytest.raises(ProtoPFaithError, match="takes no weights"):
        tree.logits(torch.zeros(1, 7), torch.zeros(1, 7))


@pytest.mark.parametrize("depth", [0, 12, 1.5])
def test_a_depth_that_is_none_is_refused(depth: Any) -> None:
    with pytest.raises(ProtoPFaithError, match="depth of a tree"):
        ProtoTree("small", 2, depth)


def test_a_pruned_tree_is_saved_and_loaded(tree: ProtoTree, tmp_path: Path) -> None:
    tree.leaves.data[[2, 6]] = 0
    tree.prune_leaves(0.02)
    save(tree.finished(), tmp_path / "tree.safetensors")
    again, _ = load(tmp_path / "tree.safetensors")
    x = torch.rand(2, *IMAGE)
    with torch.no_grad():
        assert torch.allclose(again(x), tree(x), atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("family", "prototwig", "family 'prototwig'"),
        ("family", 3, "of the family 3"),
        ("tree", [[0, 0]], "is none: for each node"),
        ("tree", [[-1, -2]], "another architecture"),
        ("tree", 5, "its tree is 5"),
        ("similarity", "log", "'similarity' should not be there"),
    ],
)
def test_a_header_that_describes_no_tree_is_refused(
    tree: ProtoTree, tmp_path: Path, key: str, value: Any, words: str
) -> None:
    import json

    path = tmp_path / "tree.safetensors"
    save(tree, path)
    with safe_open(path, "pt") as file:
        header = json.loads(file.metadata()["protopfaith"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header["architecture"][key] = value
    save_file(tensors, path, {"protopfaith": json.dumps(header)})
    with pytest.raises(ProtoPFaithError, match=words):
        load(path)
