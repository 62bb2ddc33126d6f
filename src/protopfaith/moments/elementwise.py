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

from protopfaith.arguments import instance

Formula = Callable[..., tuple[Tensor, ...]]
_backend: ContextVar[str | None] = ContextVar("backend", default=None)


@contextmanager
def fused(enabled: bool = True, backend: str = "inductor") -> Iterator[None]:
    """Compiles the formulas inside this context with `torch.compile`, one kernel each.

    The first call of each takes some seconds; after that, a GPU runs it several times faster.

    Args:
        enabled: False switches it off, inside another such context for example
        backend: of `torch.compile`

    >>> from protopfaith.moments import Gaussian
    >>> x = Gaussian(torch.zeros(2), 1.0)
    >>> with fused(backend="eager"):  # "inductor", the default, takes a compiler
    ...     y = torch.relu(x)
    >>> torch.allclose(y.mean, torch.relu(x).mean)
    True
    """
    instance(enabled, bool, "enabled", "True or False")
    token = _backend.set(backend if enabled else None)
    try:
        yield
    finally:
        _backend.reset(token)


class _Closed(torch.autograd.Function):
    """`moments(*tensors, *numbers)` forward; `slopes(...)`, the matrix of derivatives row by row,
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
    """Mean and variance by `moments`, differentiable by `slopes`, in at least float32."""
    dtype = tensors[0].dtype
    if dtype in (torch.float16, torch.bfloat16):
        results = _Closed.apply(moments, slopes, numbers, *(tensor.float() for tensor in tensors))
        return tuple(result.to(dtype) for result in results)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Closed.apply(moments, slopes, numbers, *tensors)
    return evaluate(moments, tensors, numbers)


def evaluate(formula: Formula, tensors: tuple[Tensor, ...], numbers: tuple = ()) -> tuple[Tensor, ...]:
    """The formula itself, or its compiled form inside `fused`."""
    backend = _backend.get()
    if backend is None:
        return formula(*tensors, *numbers)
    first = _dense(tensors[0])
    size, stride = first.size(), first.stride()
    # One dimension for all shapes and memory formats: one compilation serves every layer.
    flat = [_in_layout(tensor, first).as_strided((first.numel(),), (1,)) for tensor in (first, *tensors[1:])]
    return tuple(result.as_strided(size, stride) for result in _compiled(formula, backend)(*flat, *numbers))


def _dense(tensor: Tensor) -> Tensor:
    """Without gaps in memory: channels last stay last, since the convolutions that follow are fastest so."""
    is_last = tensor.dim() == 4 and tensor.stride(1) == 1
    return tensor.contiguous(
        memory_format=torch.channels_last if is_last else torch.contiguous_format
    ).detach()


def _in_layout(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor in the memory layout of another of its shape."""
    if tensor.stride() == like.stride():
        return tensor.detach()
    return torch.empty_strided(like.size(), like.stride(), dtype=tensor.dtype, device=tensor.device).copy_(
        tensor
    )


@cache
def _compiled(formula: Formula, backend: str) -> Formula:
    return torch.compile(formula, dynamic=True, fullgraph=True, backend=backend)
