"""How many images fit into a memory bound, and what to do when they do not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from protopfaith.errors import ProtoPFaithError, is_out_of_memory

Result = TypeVar("Result")

GIB = 1 << 30
# On a CPU, larger batches only fall out of its caches and cost page faults.
DEFAULT_MEMORY = {"cuda": 4 * GIB, "cpu": GIB // 8}
LARGEST_BATCH = 1024  # beyond this no device gets faster


class Batches:
    """Calls a function on at most `size` items at a time, in batches that are nearly equal (a GPU is slow at
    small ones); on fewer from then on, once memory has run out.

    >>> [len(some) for some, _ in Batches(4)(torch.square, torch.arange(10))]
    [4, 3, 3]
    """

    def __init__(self, size: int):
        self.size = max(size, 1)

    def __call__(
        self, function: Callable[[Tensor], Tensor], items: Tensor
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of items `(m, ...)`, each with `function` of it."""
        start = 0
        while start < len(items):
            rest = len(items) - start
            some = items[start : start + -(-rest // -(-rest // self.size))]
            values = unless_out_of_memory(function, some)
            if values is None:
                self.size = len(some) // 2  # the same items again, fewer at a time
                continue
            yield some, values
            start += len(some)


@torch.no_grad()
def fitting(
    function: Callable[[Tensor], Tensor],
    item: Tensor,
    memory: int | None = None,
    autocast: torch.dtype | None = None,
) -> int:
    """How many items like `item` (1, ...) `function` can take at a time.

    Within `memory` bytes, or by default within what is usual on the device (at least one item then).
    """
    need = []
    for count in (1, 3):
        batch = item.repeat(count, *[1] * (item.dim() - 1))  # a copy: the function may work in place
        with torch.autocast(item.device.type, dtype=autocast, enabled=autocast is not None):
            peak = unless_out_of_memory(partial(peak_bytes, function), batch)
        if peak is None:
            return 1
        need.append(peak)
    # The slope is per item, whatever the function holds once (weights, workspaces).
    each = max((need[1] - need[0]) // 2, item.nbytes)
    if memory is not None and memory < each:
        raise ProtoPFaithError(
            f"A memory bound of {memory:,} bytes holds no image: one takes about {each:,}; raise it."
        )
    bound = memory or DEFAULT_MEMORY.get(item.device.type, GIB)
    return int(min(max(bound // each, 1), LARGEST_BATCH))


def unless_out_of_memory(function: Callable[[Tensor], Result], batch: Tensor) -> Result | None:
    """`function(batch)`, or None where memory ran out on a batch that can be made smaller."""
    try:
        return function(batch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(batch) == 1:
            raise ProtoPFaithError(
                "Memory ran out on a single image; free memory on the device or use a smaller network or "
                "image."
            ) from error
    # Outside the handler: the exception's traceback would keep the tensors of the failed batch alive.
    release_memory(batch.device)
    return None


def release_memory(device: torch.device) -> None:
    """Gives cached blocks back, so that the next, smaller batch finds room."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def peak_bytes(function: Callable[[Tensor], Tensor], batch: Tensor) -> int:
    """Most bytes that `function(batch)` holds at one time, `batch` itself included."""
    if batch.device.type == "cuda":
        torch.cuda.synchronize(batch.device)
        torch.cuda.reset_peak_memory_stats(batch.device)
        before = torch.cuda.memory_allocated(batch.device)
        function(batch)
        torch.cuda.synchronize(batch.device)
        return torch.cuda.max_memory_allocated(batch.device) - before + batch.nbytes
    with _LiveBytes() as live:
        function(batch)
    return live.peak + batch.nbytes


class _LiveBytes(TorchDispatchMode):
    """Adds up the bytes of tensors that are alive, where the device keeps no such count."""

    def __init__(self) -> None:
        super().__init__()
        self.current = self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        outputs = func(*args, **(kwargs or {}))
        held = {id(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(outputs):
            if isinstance(leaf, Tensor) and id(leaf) not in held and leaf._base is None:
                self.current += leaf.nbytes
                weakref.finalize(leaf, self._release, leaf.nbytes)
        self.peak = max(self.peak, self.current)
        return outputs

    def _release(self, size: int) -> None:
        self.current -= size
