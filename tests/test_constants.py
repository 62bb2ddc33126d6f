from __future__ import annotations

import torch

from protopfaith.constants import constant

CPU = torch.device("cpu")


def test_the_same_values_are_made_once_for_each_number_format() -> None:
    first = constant((0.5, 2.0), torch.float32, CPU)
    assert constant((0.5, 2.0), torch.float32, CPU) is first
    assert constant((0.5, 2.0), torch.float64, CPU).dtype is torch.float64


def test_what_was_made_without_gradients_can_take_part_in_them() -> None:
    with torch.inference_mode():
        factor = constant((3.0, 7.0), torch.float32, CPU)
    weights = torch.ones(2, requires_grad=True)
    (weights * factor).sum().backward()
    assert weights.grad is not None
    assert weights.grad.tolist() == [3.0, 7.0]
