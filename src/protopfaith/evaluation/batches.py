"""Many images through a function, as many at a time as memory allows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.memory import (
    DEFAULT_MEMORY,
    GIB,
    LARGEST_BATCH,
    is_out_of_memory,
    peak_bytes,
    release_memory,
)

CPU_BATCH = 64
"""On a CPU larger batches leave its caches and get slower."""


def fitting_batch(
    function: Callable[[Tensor], Tensor],
    image: Tensor,
    memory: int | None = None,
    autocast: torch.dtype | None = None,
) -> int:
    """How many images like ``image`` (C, H, W) ``function`` can take at a time within ``memory`` bytes."""
    memory = memory or DEFAULT_MEMORY.get(image.device.type, GIB)
    reduced = torch.autocast(image.device.type, dtype=autocast, enabled=autocast is not None)
    with torch.no_grad(), reduced:
        one, three = (peak_bytes(function, image.expand(n, *image.shape).contiguous()) for n in (1, 3))
    each = max((three - one) // 2, image.nbytes)  # the slope leaves out what is held once
    most = CPU_BATCH if image.device.type == "cpu" else LARGEST_BATCH
    return int(min(max(memory // each, 1), most))


def in_batches(function: Callable[[Tensor], Tensor], numbers: Tensor, size: int) -> Tensor:
    """``function`` of the numbers (m,), ``size`` at a time, and of fewer once memory runs out."""
    results, start = [], 0
    while start < len(numbers):
        some = numbers[start : start + size]
        result = _unless_out_of_memory(function, some)
        if result is None:
            release_memory(numbers.device)
            size = len(some) // 2
            continue
        results.append(result)
        start += len(some)
    return torch.cat(results)


def _unless_out_of_memory(function: Callable[[Tensor], Tensor], some: Tensor) -> Tensor | None:
    try:
        return function(some)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(some) == 1:
            raise ProtoPFaithError(
                "Memory ran out on a single image; free memory, or use a smaller network or image."
            ) from error
    return None
