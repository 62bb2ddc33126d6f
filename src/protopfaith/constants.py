"""Small tensors that every batch or game needs, made once for each device."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=256)
def constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The values as a tensor that callers must not change.

    Bringing them from Python to a GPU waits until that is done with everything else, so it happens once.

    >>> constant((1.0, 2.0), torch.float32, torch.device("cpu")).tolist()
    [1.0, 2.0]
    """
    with torch.inference_mode(False):  # it may be needed for gradients later
        return torch.tensor(values, dtype=dtype, device=device)
