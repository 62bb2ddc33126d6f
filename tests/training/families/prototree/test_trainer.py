"""Training of trees: leaves count what they account for, and runs come out whole."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, explain_prototypes
from protopfaith.network import NO_CLASS, ProtoTree
from protopfaith.training import Recipe, Run, prune_run, train
from protopfaith.training.families.prototree.trainer import TreeTrainer, leaf_counts
from protopfaith.training.recipe import recipe_from_dict
from tests.training.conftest import TINY

MORE: dict[str, Any] = {"tree": {"depth": 3, "prune": 0.02}}


@pytest.fixture(scope="module")
def tree_recipe() -> Recipe:
    values: dict[str, Any] = copy.deepcopy(TINY) | MORE
    values["model"] |= {"family": "prototree", "initialization": "patches"}
    values["schedule"]["cycles"] = 5
    return recipe_from_dict(values)


@pytest.fixture(scope="module")
def tree_run(tree_recipe: Recipe, data: ImageData, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("trees") / "run"
    return train(tree_recipe, folder, data=data, progress=False)


def test_leaf_counts_are_the_paper_s_sum_and_every_image_counts_once() -> None:
    torch.manual_seed(0)
    tree = ProtoTree("small", 3, depth=2, prototype_channels=4)
    tree.leaves.data.normal_()
    distances, labels = torch.rand(5, 3), torch.tensor([0, 2, 1, 1, 0])
    ways, logits = tree.leaf_log_probabilities(distances), tree.logits(distances)
    found = leaf_counts(ways, tree.log_distributions(), logits, labels)
    expected = torch.zeros(4, 3)
    for image, label in enumerate(labels.tolist()):
        for leaf in range(4):
            share = float(ways[image, leaf].exp() * tree.leaves[leaf].softmax(0)[label])
            expected[leaf, label] += share / float(logits[image, label].exp())
    assert torch.allclose(found, expected, atol=1e-5)
    assert torch.allclose(found.sum(0), torch.bincount(labels).float(), atol=1e-5)


def test_a_tree_on_the_unit_sphere_is_refused(tree_recipe: Recipe, data: ImageData, tmp_path: Path) -> None:
    """Recipes made for prototypes of length 1, such as cub_quick, do not turn into a poor tree."""
    recipe = replace(tree_recipe, model=replace(tree_recipe.model, activation="unit"))
    with pytest.raises(ProtoPFaithError, match=r"model\.activation=sigmoid"):
        train(recipe, tmp_path / "run", data=data, progress=False)


def test_cycles_of_a_tree_are_one_joint_stage(tree_recipe: Recipe) -> None:
    stages = TreeTrainer.stages_of(tree_recipe.schedule, 36)
    assert [stage.name for stage in stages] == ["pretraining", "warmup", "joint", "classifier"]
    assert stages[2].epochs == tree_recipe.schedule.cycles * tree_recipe.schedule.joint.epochs


def test_milestones_halve_the_rate(tree_run: Run) -> None:
    joint = tree_run.metrics().query("stage == 'joint'").learning_rate
    assert (joint.iloc[0], joint.iloc[-1]) == (pytest.approx(16 * joint.iloc[-1]), joint.min())
    assert bool((joint.diff().dropna() <= 0).all())


def test_a_trained_tree_knows_its_classes_and_its_sources(tree_run: Run, data: ImageData) -> None:
    tree = tree_run.model()
    assert isinstance(tree, ProtoTree)
    assert tree_run.is_finished()
    assert tree_run.result()["validation_balanced_accuracy"] > 0.6
    assert tree_run.result()["prototypes"] == len(tree.prototypes)
    assert bool((tree.prototype_classes == NO_CLASS).all())
    for prototype, source in enumerate(tree.sources):
        assert source is not None
        index = data.train.paths.index(source.image)
        with torch.no_grad():
            maps = tree.distance_maps(data.preprocessing.normalize(data.train.image(index)[None]))
        assert float(maps[0, prototype, source.row, source.column]) < 1e-4


def test_every_prototype_is_on_the_nearest_patch_of_any_class(tree_run: Run, data: ImageData) -> None:
    tree = tree_run.model()
    with torch.no_grad():
        images = torch.stack([data.train.image(i) for i in range(len(data.train))])
        distances = tree.distances(data.preprocessing.normalize(images))
    assert bool((distances.amin(0) < 1e-4).all())


def test_an_interrupted_run_ends_with_the_same_tree(
    tree_run: Run, tree_recipe: Recipe, data: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, calls = TreeTrainer._train_leaves, []

    def interrupted(self: TreeTrainer, *args: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(self, *args)

    monkeypatch.setattr(TreeTrainer, "_train_leaves", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(tree_recipe, tmp_path / "run", data=data, progress=False)
    monkeypatch.undo()
    again = train(None, tmp_path / "run", resume=True, data=data, progress=False)
    for name, tensor in tree_run.model().state_dict().items():
        assert torch.equal(again.model().state_dict()[name], tensor)


def test_a_tree_is_explained_by_its_way(tree_run: Run, data: ImageData) -> None:
    explainer = Explainer(tree_run.model(), preprocessing=data.preprocessing, images=data)
    found = explainer.explain(data.test.image(0), players=8, budget=128)
    assert found.route is not None
    assert [one.prototype for one in found.evidence] == [turn.prototype for turn in found.route.turns]
    assert sum(one.score for one in found.evidence) == pytest.approx(found.route.log_probability)
    assert found.output == "log_probability"
    p = (
        found.probabilities.double().log()[found.target]
        - found.empty_probabilities.double().log()[found.target]
    )
    assert float(found.class_map.values.sum()) == pytest.approx(float(p), abs=1e-3)
    catalog = explain_prototypes(explainer, players=8, budget=128, nearest=2)
    assert len(catalog.classes) == 1
    assert len(catalog.prototypes) == len(explainer.model.prototypes)


def test_leaves_are_pruned_and_refit(tree_run: Run, data: ImageData, tmp_path: Path) -> None:
    tree = tree_run.model()
    assert isinstance(tree, ProtoTree)
    most = tree.log_distributions().exp().amax(1).sort().values - 1 / 3
    limit = float(most[:2].mean())  # the least sure leaf goes
    report = prune_run(tree_run, tmp_path / "pruned", leaves=limit, device="cpu", data=data, progress=False)
    assert report.kept < len(tree.prototypes)
    assert report.kept + len(report.dropped) == len(tree.prototypes)
    assert isinstance(report.run.model(), ProtoTree)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "pruned by its leaves"),
        ({"drop": [0]}, "pruned by its leaves"),
        ({"leaves": -1}, "at least 0"),
        ({"leaves": 0.0}, "No leaf of this tree"),
    ],
)
def test_a_tree_says_how_it_is_pruned(
    tree_run: Run, data: ImageData, tmp_path: Path, asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        prune_run(tree_run, tmp_path / "pruned", device="cpu", data=data, progress=False, **asked)


def test_leaves_are_for_trees(trained: Run, data: ImageData, tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="has no leaves to prune"):
        prune_run(trained, tmp_path / "pruned", leaves=0.1, device="cpu", data=data, progress=False)


def test_a_family_that_is_none_is_told(recipe: Recipe, data: ImageData, tmp_path: Path) -> None:
    values = recipe.to_dict()
    values["model"]["family"] = "prototrie"
    with pytest.raises(ProtoPFaithError, match=r"no family of networks named 'prototrie'.*prototree"):
        train(recipe_from_dict(values), tmp_path / "run", data=data, progress=False)
