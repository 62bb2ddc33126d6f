"""Rules that act on every variable by itself: closed forms with closed derivatives, optionally fused into
one kernel.

Autograd through a rule's formula would keep a dozen tensors per activation and divide zero by zero at its
limits. So a rule brings its four slopes in closed form, and only its arguments are kept for the backward
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import torch
from torch import Tensor

Formula = Callable[..., tuple[Tensor, ...]]
_fused: ContextVar[bool] = ContextVar("fused", default=False)


@contextmanager
def fused(enabled: bool = True) -> Iterator[None]:
    """Compiles the formulas inside this context with ``torch.compile``, one kernel each, on CUDA devices.

    The first call of each formula takes some seconds; after that it runs several times faster.
    """
    token = _fused.set(enabled)
    try:
        yield
    finally:
        _fused.reset(token)


class _Closed(torch.autograd.Function):
    """``moments(*tensors, *numbers)`` forward; ``slopes(...)``, the matrix of derivatives row by row,
    backward."""

    @staticmethod
    def forward(ctx: Any, moments: Formula, slopes: Formula, numbers: tuple, *tensors: Tensor) -> Any:
        ctx.save_for_backward(*tensors)
        ctx.slopes, ctx.numbers = slopes, numbers
        return evaluate(moments, tensors, numbers)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        tensors = ctx.saved_tensors
        slopes = evaluate(ctx.slopes, tensors, ctx.numbers)
        count = len(tensors)
        mean, variance = slopes[:count], slopes[count:]
        return (
            None,
            None,
            None,
            *(gradients[0] * m + gradients[1] * v for m, v in zip(mean, variance, strict=True)),
        )


def closed_form(moments: Formula, slopes: Formula, *tensors: Tensor, numbers: tuple = ()) -> Any:
    """Mean and variance by ``moments``, differentiable by ``slopes``, in at least float32."""
    dtype = tensors[0].dtype
    if dtype in (torch.float16, torch.bfloat16):
        results = _Closed.apply(moments, slopes, numbers, *(tensor.float() for tensor in tensors))
        return tuple(result.to(dtype) for result in results)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Closed.apply(moments, slopes, numbers, *tensors)
    return evaluate(moments, tensors, numbers)


def evaluate(formula: Formula, tensors: tuple[Tensor, ...], numbers: tuple = ()) -> tuple[Tensor, ...]:
    """The formula itself, or its compiled form inside :func:`fused`."""
    first = tensors[0]
    if not (_fused.get() and first.is_cuda):
        return formula(*tensors, *numbers)
    size, stride = first.size(), first.stride()
    if not _is_dense(first):
        first = first.contiguous()
        stride = first.stride()
    # One dimension for all shapes and memory formats: one compilation serves every layer.
    flat = [_as(tensor, size, stride).as_strided((tensor.numel(),), (1,)) for tensor in (first, *tensors[1:])]
    results = _compiled(formula)(*flat, *numbers)
    return tuple(result.as_strided(size, stride) for result in results)


def _is_dense(tensor: Tensor) -> bool:
    return torch.ops.aten.is_non_overlapping_and_dense(tensor)


def _as(tensor: Tensor, size: torch.Size, stride: tuple[int, ...]) -> Tensor:
    """The tensor in the given memory layout."""
    if tensor.stride() == stride and tensor.size() == size:
        return tensor
    return torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


@cache
def _compiled(formula: Formula) -> Formula:
    return torch.compile(formula, dynamic=True, fullgraph=True)
