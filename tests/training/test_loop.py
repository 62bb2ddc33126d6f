from __future__ import annotations

import torch

from protopfaith.training.checkpoint import Checkpoint
from protopfaith.training.launch import build_model, make_fabric
from protopfaith.training.loop import Trainer
from protopfaith.training.run import create_run
from protopfaith.training.schedule import Stage


def test_a_stage_trains_its_parts_and_leaves_the_others(recipe, data, tmp_path) -> None:
    fabric, run = make_fabric(recipe.compute), create_run(tmp_path / "run", recipe, data)
    model = build_model(recipe, data)
    before = {name: value.clone() for name, value in model.named_parameters()}
    stages = [Stage("classifier", epochs=2, cycle=1)]
    Trainer(fabric, run, recipe, data, model, stages=stages, projecting=False, progress=False).fit()
    changed = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
    assert changed == {"classifier.weight"}
    assert Checkpoint.load(run.checkpoint_path).position.finished
    assert run.metrics().stage.to_list() == ["classifier", "classifier"]
