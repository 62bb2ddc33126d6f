"""From a GPU to the CPU, with as little waiting as can be."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


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


def _on_the_way(tensor: Tensor) -> Tensor:
    if tensor.device.type != "cuda":
        return tensor.cpu()
    return torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor, non_blocking=True)
