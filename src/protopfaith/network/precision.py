"""Full float32 for one computation, whatever the caller chose for the rest of the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def full_precision(device_type: str) -> Iterator[None]:
    """No autocast, and no TF32 or bfloat16 in float32 matrix products; the caller's settings come back after.

    Only matrix products are covered (``torch.matmul`` and friends), not cuDNN convolutions: their switch is
    another one, so code in here writes 1x1 convolutions as matrix products.
    """
    with torch.autocast(device_type, enabled=False):
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
            yield from _by_backend()
        else:  # torch before 2.9 has one setting for all backends
            yield from _by_legacy_setting()


def _by_backend() -> Iterator[None]:
    reduced = [
        (matmul, matmul.fp32_precision)
        for matmul in _matmul_backends()
        if matmul.fp32_precision not in ("ieee", "none")
    ]
    for matmul, _ in reduced:
        matmul.fp32_precision = "ieee"
    try:
        yield
    finally:
        for matmul, before in reduced:
            # "none" inherits from the setting above it; where that gives what was there, it was inherited.
            matmul.fp32_precision = "none"
            if matmul.fp32_precision != before:
                matmul.fp32_precision = before


def _matmul_backends() -> list[Any]:
    return [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul]  # type: ignore[attr-defined]


def _by_legacy_setting() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    if before == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
