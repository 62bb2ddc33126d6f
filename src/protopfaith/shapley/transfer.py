"""Passing numbers between a GPU and the CPU with as little waiting as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def read_later(flag: Tensor) -> Callable[[], bool]:
    """A function that gives the flag. It waits until a GPU has found it, but not for what was asked since.

    >>> read_later(torch.tensor(2.0) > 1)()
    True
    """
    if flag.device.type != "cuda":
        return lambda: bool(flag)
    here = _on_the_way(flag)
    known = torch.cuda.current_stream(flag.device).record_event()

    def read() -> bool:
        known.synchronize()
        return bool(here)

    return read


def on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU. A GPU writes them into memory that stays in place, several times as fast.

    >>> on_cpu({"a": torch.ones(2)})["a"].tolist()
    [1.0, 1.0]
    """
    devices = {tensor.device for tensor in tensors.values() if tensor.device.type == "cuda"}
    found = {name: _on_the_way(tensor) for name, tensor in tensors.items()}
    for device in devices:
        torch.cuda.current_stream(device).synchronize()
    return found


def side_by_side(works: Sequence[Callable[[], T]], device: torch.device) -> list[T]:
    """The results of works that do not depend on each other; on a GPU each has a stream of its own.

    >>> side_by_side([lambda: 1, lambda: 2], torch.device("cpu"))
    [1, 2]
    """
    if device.type != "cuda":
        return [work() for work in works]
    main = torch.cuda.current_stream(device)
    sides = [_side_stream(device, main.cuda_stream, number) for number in range(1, len(works))]
    for side in sides:  # which also keeps them from memory that the main stream still reads
        side.wait_stream(main)
    found = []
    for stream, work in zip((main, *sides), works, strict=True):
        with torch.cuda.stream(stream):
            found.append(work())
    for side in sides:
        main.wait_stream(side)
    return found


@lru_cache(maxsize=32)
def _side_stream(device: torch.device, main: int, number: int) -> torch.cuda.Stream:
    """One beside a main stream alone: where two threads explain images at once, each has its own, as neither
    knows what the other still reads."""
    return torch.cuda.Stream(device)


def _on_the_way(tensor: Tensor) -> Tensor:
    if tensor.device.type != "cuda":
        return tensor.cpu()
    return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor, non_blocking=True)
