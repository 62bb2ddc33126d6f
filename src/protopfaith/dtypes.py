"""Full float32 for one computation, whatever the caller chose for the rest of the program.

Torch may round the inputs of float32 products to TF32 (10 bits; its default for convolutions on a GPU) or
bfloat16 (7 bits). A plain forward pass bears that; a difference of nearly equal numbers does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch


@contextmanager
def unrounded(device_type: str) -> Iterator[None]:
    """No autocast, and full float32 in matrix products; the caller's settings come back after.

    Convolutions are not covered: their switch is another one, so code in here writes 1x1 convolutions as
    matrix products.
    """
    with torch.autocast(device_type, enabled=False), full_float32(convolutions=False):
        yield


@contextmanager
def full_float32(*, convolutions: bool = True) -> Iterator[None]:
    """Full float32 in matrix products and, usually, convolutions, forward and backward; the caller's settings
    come back after. Autocast is left as it is."""
    before = [(switch, switch.read()) for switch in switches(convolutions=convolutions)]
    reduced = [(switch, value) for switch, value in before if value not in (switch.full, switch.inherited)]
    for switch, _ in reduced:
        switch.write(switch.full)
    try:
        yield
    finally:
        for switch, value in reduced:
            if switch.inherited is not None:  # where that gives what was there, it was inherited
                switch.write(switch.inherited)
            if switch.read() != value:
                switch.write(value)


class Switch(NamedTuple):
    """Where torch keeps how it rounds some of its float32 operations."""

    read: Callable[[], Any]
    write: Callable[[Any], None]
    full: str | bool  # what stands for full float32
    inherited: str | None = None  # what is written to follow the setting above, where there is one


def switches(*, convolutions: bool) -> list[Switch]:
    """Those of matrix products, with or without those of convolutions, that this version of torch has."""
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        return _by_backend(convolutions)
    return _legacy(convolutions)  # torch before 2.9


def _by_backend(convolutions: bool) -> list[Switch]:
    backends: Any = torch.backends
    owners = [backends.cuda.matmul, getattr(backends.mkldnn, "matmul", None)]
    if convolutions:
        owners += [backends.cudnn.conv, getattr(backends.mkldnn, "conv", None)]
    return [_attribute(owner, "fp32_precision", "ieee", "none") for owner in owners if owner is not None]


def _legacy(convolutions: bool) -> list[Switch]:
    """Matrix products of all backends have one setting; it knows more than their `allow_tf32`."""
    found = [Switch(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest")]
    return [*found, _attribute(torch.backends.cudnn, "allow_tf32", False)] if convolutions else found


def _attribute(owner: Any, name: str, full: str | bool, inherited: str | None = None) -> Switch:
    return Switch(lambda: getattr(owner, name), lambda value: setattr(owner, name, value), full, inherited)
