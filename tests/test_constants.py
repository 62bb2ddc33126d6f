from __future__ import annotations

import pytest
import torch
from torch import Tensor

from protopfaith.constants import constant, remembered

CPU = torch.device("cpu")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_remembered_is_made_once_for_each_device(device: str) -> None:
    asked = []

    @remembered(2)
    def numbers(count: int, device: torch.device) -> tuple[Tensor, Tensor]:
        asked.append(count)
        return torch.arange(count, device=device), torch.ones(count, device=device)

    for count in (3, 3, 4, 4, 3):
        found = numbers(count, torch.device(device))
        assert found[0].tolist() == list(range(count))
        assert found[1].device.type == device
    assert asked == [3, 4]
    numbers(5, torch.device(device))
    numbers(3, torch.device(device))
    assert asked in ([3, 4, 5], [3, 4, 5, 3])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_no_stream_reads_what_another_one_has_yet_to_make() -> None:
    device = torch.device("cuda")

    @remembered(8)
    def numbers(count: int, device: torch.device) -> Tensor:
        return torch.arange(count, device=device)

    busy, other = torch.cuda.Stream(), torch.cuda.Stream()
    for count in range(1000, 1010):
        with torch.cuda.stream(busy):
            torch.cuda._sleep(10**8)  # about 50 ms, during which nothing else is done in this stream
            numbers(count, device)
        with torch.cuda.stream(other):
            total = int(numbers(count, device).sum())
        assert total == count * (count - 1) // 2


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
