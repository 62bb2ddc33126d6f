"""Full float32 in convolutions and matrix products, where a difference of nearly equal numbers counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_REDUCED = ("tf32", "bf16")


@contextmanager
def full_float32() -> Iterator[None]:
    """No TF32 (torch's default for convolutions on a GPU) and no bfloat16 inside float32 operations, forward
    and backward; the caller's settings come back after.

    TF32 keeps 10 bits. A plain forward pass bears that; a derivative along a path does not, since it is
    compared with differences of the function over short steps.
    """
    before = [(owner, name, getattr(owner, name)) for owner, name in _settings()]
    before = [setting for setting in before if setting[2] is True or setting[2] in _REDUCED]
    for owner, name, value in before:
        setattr(owner, name, False if value is True else "ieee")
    try:
        yield
    finally:
        for owner, name, value in before:
            if value is not True:  # "none" inherits: where that gives what was there, it was inherited
                setattr(owner, name, "none")
            if getattr(owner, name) != value:
                setattr(owner, name, value)


def _settings() -> list[tuple[Any, str]]:
    """Where this version of torch keeps its precision of float32 operations."""
    backends: Any = torch.backends
    if not hasattr(backends.cudnn, "conv"):  # torch before 2.9
        return [(backends.cudnn, "allow_tf32"), (backends.cuda.matmul, "allow_tf32")]
    owners = [backends.cudnn.conv, backends.cuda.matmul]
    owners += [owner for name in ("conv", "matmul") if (owner := getattr(backends.mkldnn, name, None))]
    return [(owner, "fp32_precision") for owner in owners]
