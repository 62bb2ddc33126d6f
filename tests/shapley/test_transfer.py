"""What comes back to the CPU is what was there."""

from __future__ import annotations

import pytest
import torch

from protopfaith.shapley.transfer import on_cpu, read_later, side_by_side

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_arrive_as_they_were(device: str) -> None:
    there = {"a": torch.arange(6, device=device).reshape(2, 3), "b": torch.ones(4, device=device) > 0}
    here = on_cpu(there)
    assert set(here) == {"a", "b"}
    for name, tensor in here.items():
        assert tensor.device.type == "cpu"
        assert torch.equal(tensor, there[name].cpu())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value", [True, False])
def test_a_flag_is_what_it_was_when_it_was_asked_for(value: bool, device: str) -> None:
    flag = torch.tensor(value, device=device).clone()
    read = read_later(flag)
    if device == "cuda":
        flag.logical_not_()
    assert read() is value


@pytest.mark.parametrize("device", DEVICES)
def test_works_side_by_side_give_what_they_give_alone(device: str) -> None:
    x = torch.rand(300, 300, device=device)
    works = [lambda: x @ x, lambda: (x @ x).sum(0), lambda: x + 1]
    for _ in range(3):
        for found, work in zip(side_by_side(works, x.device), works, strict=True):
            assert torch.allclose(found, work())
