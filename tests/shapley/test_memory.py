from __future__ import annotations

import pytest
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Game, Players, estimate
from protopfaith.shapley.memory import Batches, fitting

from .games import network

IMAGE = torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(0)) + 0.5


def in_batches(function, items: Tensor, size: int) -> Tensor:
    return torch.cat([values for _, values in Batches(size)(function, items)])


def test_results_do_not_depend_on_the_batch_size() -> None:
    numbers = torch.arange(23)
    for size in (0, 1, 5, 23, 100):
        assert torch.equal(in_batches(lambda n: n * n, numbers, size), numbers**2)


def test_batches_are_halved_when_memory_runs_out_and_stay_small() -> None:
    sizes = []

    def hungry(numbers: Tensor) -> Tensor:
        sizes.append(len(numbers))
        if len(numbers) > 3:
            raise MemoryError
        return numbers + 1

    batches = Batches(10)
    for _ in range(2):
        found = torch.cat([values for _, values in batches(hungry, torch.arange(10))])
        assert torch.equal(found, torch.arange(10) + 1)
    assert batches.size <= 3
    assert max(sizes[2:]) <= 3


def test_one_image_too_many_is_said() -> None:
    def starving(numbers: Tensor) -> Tensor:
        raise MemoryError

    with pytest.raises(ProtoPFaithError, match="single image"):
        in_batches(starving, torch.arange(2), 2)
    with pytest.raises(ProtoPFaithError, match="single image"):
        fitting(starving, IMAGE[None])


def test_other_errors_pass_through() -> None:
    def broken(numbers: Tensor) -> Tensor:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        in_batches(broken, torch.arange(2), 2)


def test_a_batch_grows_with_memory_and_a_bound_for_nothing_is_refused() -> None:
    function = torch.nn.Conv2d(3, 8, 3)
    sizes = [fitting(function, IMAGE[None], memory) for memory in (20_000, 200_000, 2_000_000_000)]
    assert 1 <= sizes[0] < sizes[1] < sizes[2]
    with pytest.raises(ProtoPFaithError, match="holds no image"):
        fitting(function, IMAGE[None], 1)


def test_what_is_usual_is_no_bound_for_one_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asked for the usual bound, so an image that is larger is tried all the same."""
    monkeypatch.setattr("protopfaith.shapley.memory.DEFAULT_MEMORY", {"cpu": 1})
    game = Game(lambda x: x.flatten(1).sum(1), IMAGE, Players.windows((16, 16), 8))
    assert game.batch_size == 1


@pytest.mark.parametrize("method", ["owen", "dasp", "moment_path"])
@pytest.mark.parametrize("most", [1, 2])
def test_a_game_is_played_with_as_many_images_as_there_is_memory_for(method: str, most: int) -> None:
    """Also where it begins: the image and its baseline, the check, and the probes of memory."""
    function = network(size=16)

    def hungry(images: Tensor) -> Tensor:
        if len(images) > most * (2 if method == "dasp" else 1):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return function(images)

    players = Players.windows((16, 16), 8)
    found = [estimate(Game(f, IMAGE, players), method, budget=100).values for f in (hungry, function)]
    assert torch.allclose(*found, atol=1e-4)
