"""Small tensors that stay where they are."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=64)
def constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The numbers as a tensor `(n,)` on the device, not to be changed.

    Made once: numbers that come from the CPU wait until a GPU has done all that it was asked before.

    >>> constant((0.5, 2.0), torch.float64, torch.device("cpu")).tolist()
    [0.5, 2.0]
    """
    return torch.tensor(values, dtype=dtype, device=device)
