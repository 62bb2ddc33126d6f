"""Tensors and modules are found wherever a file has them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from protopfaith.conversion.stubs import module_state, parts_of, state_with
from protopfaith.conversion.unpickling import stub_class


def stub(**values: Any) -> Any:
    made = stub_class("torch.nn", "Module").__new__(stub_class("torch.nn", "Module"))
    made.__setstate__(values)
    return made


def test_a_state_dict_is_that_of_the_module_itself() -> None:
    inner = stub(_parameters={"weight": torch.ones(1), "bias": None}, _buffers={"mean": torch.zeros(1)})
    outer = stub(_modules={"inner": inner, "gone": None}, _parameters={})
    assert list(parts_of(outer)) == ["inner"]
    assert module_state(outer) == {"inner.weight": torch.ones(1), "inner.mean": torch.zeros(1)}


@pytest.mark.parametrize("odd", [None, 3, torch.zeros(1), stub(), stub(_modules=[1])])
def test_what_is_no_module_has_no_parts(odd: Any) -> None:
    assert parts_of(odd) == {}


@pytest.mark.parametrize("start", ["", "module.", "_orig_mod.module.", "net."])
def test_what_names_begin_with_does_not_matter(start: str) -> None:
    state = {f"{start}x": torch.ones(1), f"{start}y.weight": torch.zeros(1), "step": 3}
    for content in (state, {"epoch": 1, "state": state}):
        assert state_with(content, "x") == {"x": torch.ones(1), "y.weight": torch.zeros(1)}
    assert state_with(state, "z") is None
    assert state_with([state], "x") is None
