import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.training.checkpoint import (
    Checkpoint,
    Position,
    pack_module,
    pack_optimizer,
    pack_scheduler,
    read_position,
    unpack_module,
    unpack_optimizer,
)


def steps(module, optimizer, scheduler, count):
    for _ in range(count):
        optimizer.zero_grad()
        module(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
        scheduler.step()


def training():
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    groups = [{"params": [module.weight], "lr": 0.1}, {"params": [module.bias], "lr": 0.2}]
    optimizer = torch.optim.AdamW(groups)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=3, cycle_momentum=False)
    return module, optimizer, scheduler


def test_training_goes_on_bit_for_bit(tmp_path):
    whole = training()
    steps(*whole, 7)

    module, optimizer, scheduler = training()
    steps(module, optimizer, scheduler, 4)
    tensors, groups = pack_optimizer(optimizer)
    state = {**pack_module("model", module), **tensors}
    Checkpoint(Position(2, 1, 0.5), state, [None], groups, pack_scheduler(scheduler)).save(tmp_path / "last")

    loaded = Checkpoint.load(tmp_path / "last")
    assert loaded.position == read_position(tmp_path / "last") == Position(2, 1, 0.5)
    module, optimizer, scheduler = training()
    unpack_module("model", module, loaded.tensors)
    unpack_optimizer(optimizer, loaded)
    scheduler.load_state_dict(loaded.scheduler)
    steps(module, optimizer, scheduler, 3)
    assert torch.equal(module.weight, whole[0].weight)
    assert torch.equal(module.bias, whole[0].bias)


def test_other_files_are_refused_in_one_sentence(tmp_path):
    (tmp_path / "text").write_text("no checkpoint")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign")
    save_file({"a": torch.zeros(1)}, tmp_path / "newer", {"protopfaith-training": json.dumps({"format": 99})})
    for name in ("missing", "text", "foreign"):
        with pytest.raises(ProtoPFaithError, match="is not the checkpoint of a training"):
            Checkpoint.load(tmp_path / name)
    with pytest.raises(ProtoPFaithError, match="has format 99"):
        Checkpoint.load(tmp_path / "newer")


def test_a_cut_file_is_refused(tmp_path):
    Checkpoint(Position(), {"a": torch.zeros(100)}).save(tmp_path / "last")
    content = (tmp_path / "last").read_bytes()
    (tmp_path / "last").write_bytes(content[: len(content) // 2])
    with pytest.raises(ProtoPFaithError, match="is not the checkpoint"):
        Checkpoint.load(tmp_path / "last")


def test_a_position_is_made_of_shares(tmp_path):
    for name, value in (("best", 1.5), ("best", float("nan")), ("plain", True), ("moved", -1)):
        Checkpoint(Position(**{name: value}), {}).save(tmp_path / "last")
        with pytest.raises(ProtoPFaithError, match="its position is none"):
            read_position(tmp_path / "last")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.pop("model.weight"),
        lambda t: t.update({"model.more": torch.zeros(2)}),
        lambda t: t.update({"model.weight": torch.zeros(3, 2)}),
        lambda t: t.update({"model.weight": torch.zeros(2, 3).half()}),
        lambda t: t["model.bias"].fill_(float("nan")),
        lambda t: t["model.bias"].fill_(float("inf")),
    ],
)
def test_tensors_of_another_module_are_refused(change):
    module = training()[0]
    tensors = pack_module("model", training()[0])
    change(tensors)
    before = module.weight.clone()
    with pytest.raises(ValueError, match=r"missing|another shape"):
        unpack_module("model", module, tensors)
    assert torch.equal(module.weight, before)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.clear(),
        lambda t: t.pop("optimizer.0.exp_avg"),
        lambda t: t.update({"optimizer.9.exp_avg": torch.zeros(2)}),
        lambda t: t.update({"optimizer.1": torch.zeros(2)}),
        lambda t: t.update({"optimizer.1.step": torch.zeros(2)}),
        lambda t: t["optimizer.1.step"].fill_(0),
        lambda t: t["optimizer.0.exp_avg_sq"].neg_(),
        lambda t: t["optimizer.0.exp_avg"].fill_(float("inf")),
    ],
)
def test_moments_of_another_optimizer_are_refused(change):
    module, optimizer, scheduler = training()
    steps(module, optimizer, scheduler, 2)
    tensors, groups = pack_optimizer(optimizer)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    unpack_optimizer(optimizer, Checkpoint(Position(), tensors, [], groups))
    change(tensors)
    with pytest.raises(ValueError, match=r"missing|another shape|other weights|unpack|cannot be"):
        unpack_optimizer(optimizer, Checkpoint(Position(), tensors, [], groups))
