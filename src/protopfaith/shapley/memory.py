"""How many images fit into a memory bound, and what to do when they do not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GIB = 1 << 30
# On a CPU, larger batches only fall out of its caches and cost page faults.
DEFAULT_MEMORY = {"cuda": 4 * GIB, "cpu": GIB // 8}
LARGEST_BATCH = 1024  # beyond this no device gets faster


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on any device."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and (
        "out of memory" in str(error).lower() or "can't allocate memory" in str(error).lower()
    )


def release_memory(device: torch.device) -> None:
    """Gives cached blocks back, so that the next, smaller batch finds room."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def peak_bytes(function: Callable[[Tensor], Tensor], batch: Tensor) -> int:
    """Most bytes that ``function(batch)`` holds at one time, ``batch`` itself included."""
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
