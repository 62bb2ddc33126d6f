from __future__ import annotations

import pytest
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.batches import fitting_batch, in_batches


def test_results_do_not_depend_on_the_batch_size() -> None:
    numbers = torch.arange(23)
    for size in (1, 5, 23, 100):
        assert torch.equal(in_batches(lambda n: n * n, numbers, size), numbers**2)


def test_batches_are_halved_when_memory_runs_out() -> None:
    sizes = []

    def hungry(numbers: Tensor) -> Tensor:
        sizes.append(len(numbers))
        if len(numbers) > 3:
            raise MemoryError
        return numbers + 1

    assert torch.equal(in_batches(hungry, torch.arange(10), 10), torch.arange(10) + 1)
    assert max(sizes[2:]) <= 3


def test_one_image_too_many_is_said() -> None:
    def starving(numbers: Tensor) -> Tensor:
        raise MemoryError

    with pytest.raises(ProtoPFaithError, match="single image"):
        in_batches(starving, torch.arange(2), 2)


def test_other_errors_pass_through() -> None:
    def broken(numbers: Tensor) -> Tensor:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        in_batches(broken, torch.arange(2), 2)


def test_a_batch_grows_with_memory_and_is_never_empty() -> None:
    image = torch.zeros(3, 16, 16)
    function = torch.nn.Conv2d(3, 8, 3)
    sizes = [fitting_batch(function, image, memory) for memory in (1, 200_000, 2_000_000_000)]
    assert sizes[0] == 1
    assert sizes[0] < sizes[1] <= sizes[2]
