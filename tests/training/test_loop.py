from __future__ import annotations

import pytest
import torch

from protopfaith.network import save
from protopfaith.training import saving, train
from protopfaith.training.checkpoint import Checkpoint, pack_module
from protopfaith.training.launch import build_model, make_fabric
from protopfaith.training.loop import Trainer
from protopfaith.training.new_run import create_run
from protopfaith.training.recipe import recipe_from_dict
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


def test_copies_that_do_not_count_change_no_bit(recipe, trained, data, tmp_path) -> None:
    """Nor do whole images look otherwise because of them."""
    hide = {"share": 0.5, "copies": True, "smallest": 4, "largest": 8}
    values = recipe.to_dict() | {"augmentation": {"flip": 0.5, "hide": hide}}
    idle = train(recipe_from_dict(values, ["costs.hidden=0"]), tmp_path / "idle", data=data, progress=False)
    counting = train(recipe_from_dict(values), tmp_path / "counting", data=data, progress=False)
    weights, same, other = (Checkpoint.load(run.checkpoint_path).tensors for run in (trained, idle, counting))
    assert all(torch.equal(tensor, same[name]) for name, tensor in weights.items())
    assert not all(torch.equal(tensor, other[name]) for name, tensor in weights.items())


def make_trainer(recipe, data, folder) -> Trainer:
    run = create_run(folder, recipe, data)
    return Trainer(make_fabric(recipe.compute), run, recipe, data, build_model(recipe, data), progress=False)


@pytest.mark.parametrize("lost_cycle", ["go_back", "go_on"])
def test_after_a_lost_cycle_the_next_starts_from_the_best_model(
    recipe, data, tmp_path, monkeypatch, lost_cycle
) -> None:
    """The second cycle is made to spoil everything; the third begins where the first ended, or there."""
    monkeypatch.setattr(saving, "PERFECT", 2.0)  # all three cycles, however good the first is
    changes = [f"schedule.lost_cycle={lost_cycle}", "schedule.cycles=3", "costs.companion=1.0"]
    changes += ["optimization.learning_rate=0.003", "model.initialization=evidence"]
    trainer = make_trainer(recipe_from_dict(recipe.to_dict(), changes), data, tmp_path / "run")
    train_epoch, recover, said, best = trainer.train_epoch, trainer._recover, [], {}

    def spoil(*args):
        sums = train_epoch(*args)
        stage = trainer.stages[trainer.saver.position.stage]
        if (stage.name, stage.cycle) == ("joint", 2):
            with torch.no_grad():
                for parameter in trainer.model.features.parameters():
                    parameter.zero_()
                trainer.head.weight.zero_()
        return sums

    def watch(stage):
        recover(stage)
        if stage.cycle == 3:
            best.update(pack_module("model", trainer.model), **pack_module("head", trainer.head))

    trainer.train_epoch, trainer._recover, trainer.progress.say = spoil, watch, said.append
    trainer.fit()
    kept = trainer.run.model()
    back = lost_cycle == "go_back"
    assert torch.equal(best["model.features.0.weight"], kept.features[0].weight) is back
    assert (float(best["head.weight"].abs().max()) > 0.05) is back
    assert any("starts from the best model" in sentence for sentence in said) is back
    assert any("prototypes are distinct" in sentence for sentence in said)  # all latent vectors were equal
    assert trainer.run.result()["cycle"] in (1, 3)


def test_repeated_prototypes_start_anew(recipe, data, tmp_path) -> None:
    trainer = make_trainer(recipe, data, tmp_path / "run")
    with torch.no_grad():
        trainer.model.prototypes[1] = trainer.model.prototypes[0]
    before = trainer.model.prototypes.detach().clone()
    save(trainer.model, trainer.run.model_path)
    trainer._recover(Stage("joint", 1, cycle=1))
    assert torch.equal(trainer.model.prototypes, before)  # nothing has been projected yet
    trainer._recover(Stage("joint", 1, cycle=2))
    changed = (trainer.model.prototypes != before).any(dim=1)
    assert changed.nonzero().flatten().tolist() == [1]


def test_fewer_epochs_for_more_images(recipe, data, tmp_path) -> None:
    changes = [f"schedule.images={len(data.train) // 4}", "schedule.cycles=1", "schedule.joint.epochs=4"]
    run = train(recipe_from_dict(recipe.to_dict(), changes), tmp_path / "run", data=data, progress=False)
    counts = run.metrics().stage.value_counts()
    assert counts.to_dict() == {"pretraining": 1, "warmup": 1, "joint": 2, "classifier": 2}
