from __future__ import annotations

from pathlib import Path

import pytest

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.training import load_recipe, recipe_names, train
from protopfaith.training.unused import check_used
from tests.cli.conftest import fails_with, protopfaith

WRONG = [
    (["tree.depth=3"], "tree.depth=3 is for trees"),
    (["model.family=xprotonet", "tree.milestones=[0.5]"], "tree.milestones"),
    (["costs.cluster=-1"], "costs.cluster=-1 would reward"),
    (["costs.separation=-0.5"], "costs.separation=-0.5 would reward"),
    (["costs.label_smoothing=1"], "costs.label_smoothing=1 leaves nothing"),
    (["schedule.pretraining.label_smoothing=1"], "schedule.pretraining.label_smoothing=1 leaves nothing"),
    (["augmentation.scale=[1e-9,1e-9]"], "leaves nothing of an image"),
    (["model.otherwise=resnet18"], "model.weights is None"),
    (["augmentation.hide.smallest=9", "augmentation.hide.largest=8"], "hide.smallest=9 is more than"),
]


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_uses_what_it_says(name: str) -> None:
    check_used(load_recipe(name))


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_what_would_change_nothing_is_told_before_a_run(
    changes: list[str], words: str, data: ImageData, tmp_path: Path
) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        train(load_recipe("birds", changes), tmp_path / "run", data=data)
    fails_with(protopfaith(tmp_path, "train", "birds", *changes, "--out", "run"), words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("family", ["prototree", "own"])
def test_trees_and_families_of_others_may_have_settings_of_trees(family: str) -> None:
    check_used(load_recipe("birds", [f"model.family={family}", "tree.depth=3"]))
