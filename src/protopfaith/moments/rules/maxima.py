"""Maxima and minima, by balanced trees of pairwise maxima: of logarithmic depth. A chain would have less bias
on independent variables, but takes as many steps as there are variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import formulas
from protopfaith.moments.dispatch import missing_rule, rule
from protopfaith.moments.elementwise import closed_form
from protopfaith.moments.gaussian import Gaussian, aligned
from protopfaith.moments.normal import cdf, root, signed_deviations, tails

LOWEST = torch.finfo(torch.float32).min / 4
"""Stands for minus infinity where max pooling pads: it never wins, and differences of two of it are not
NaN."""


@rule("maximum", "fmax")
def maximum(function: Callable, input: Any, other: Any) -> Gaussian:
    """t = m1 - m2, s^2 = v1 + v2 - 2 c, a = t/s: mean = m1 P + m2 Q + s phi;
    variance = v1 P + v2 Q + t^2 P Q + t s phi (Q - P) - s^2 phi^2, where c is what common factors share."""
    return larger(*aligned(input, other))


@rule("minimum", "fmin")
def minimum(function: Callable, input: Any, other: Any) -> Gaussian:
    """Minus the maximum of the negatives."""
    input, other = aligned(input, other)
    return -larger(-input, -other)


@rule("amax")
def largest(function: Callable, input: Gaussian, dim: Any = (), keepdim: bool = False) -> Gaussian:
    """The maximum over dimensions, by a balanced tree of maximum."""
    dims = sorted(
        d % input.dim() for d in ((dim,) if isinstance(dim, int) else tuple(dim) or range(input.dim()))
    )
    kept = [d for d in range(input.dim()) if d not in dims]
    rows = input.permute(*kept, *dims).reshape(*(input.shape[d] for d in kept), -1)
    result = tree(rows)
    if not keepdim:
        return result
    return result.reshape([1 if d in dims else size for d, size in enumerate(input.shape)])


@rule("amin")
def smallest(function: Callable, input: Gaussian, dim: Any = (), keepdim: bool = False) -> Gaussian:
    """Minus the largest of the negatives."""
    return -largest(function, -input, dim, keepdim)


@rule("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(  # noqa: PLR0917  (as torch has it)
    function: Callable,
    input: Gaussian,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Gaussian:
    """The maximum over windows: a balanced tree along each dimension in turn; padding never wins."""
    if return_indices:
        raise missing_rule(function)
    count = int(function.__name__[len("max_pool")])  # max_pool2d pools 2 dimensions
    stride = kernel_size if stride is None or stride == [] else stride
    for dimension in range(1, count + 1):
        k, s, p, d = (_of(value, -dimension, count) for value in (kernel_size, stride, padding, dilation))
        input = _pool_along(
            input,
            input.dim() - dimension,
            kernel=k,
            stride=s,
            padding=p,
            dilation=d,
            ceil_mode=ceil_mode,
        )
    return input


@rule(F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
def adaptive_max_pool(
    function: Callable, input: Gaussian, output_size: Any, return_indices: bool = False
) -> Gaussian:
    """The maximum over all positions, for output size 1."""
    sizes = (output_size,) if isinstance(output_size, int) else tuple(output_size)
    if return_indices or any(size != 1 for size in sizes):
        raise ProtoPFaithError(
            f"Adaptive max pooling has a moment rule for output size 1, but {output_size} was asked; use max "
            "pooling with a fixed window."
        )
    count = int(function.__name__[len("adaptive_max_pool")])
    return largest(function, input, tuple(range(-count, 0)), keepdim=True)


def tree(x: Gaussian) -> Gaussian:
    """The maximum over the last dimension."""
    while (count := x.shape[-1]) > 1:
        half = count // 2
        pairs = larger(x[..., :half], x[..., half : 2 * half])
        x = torch.cat([pairs, x[..., 2 * half :]], -1) if count % 2 else pairs  # type: ignore[assignment,list-item]
    return x[..., 0]


def larger(a: Gaussian, b: Gaussian) -> Gaussian:
    """The larger of two of one shape, variable by variable."""
    if a.factors is not None and b.factors is not None:
        return _larger_together(a, b)
    return Gaussian.trusted(*closed_form(formulas.maximum, formulas.maximum_slopes, *a.moments, *b.moments))


def _larger_together(a: Gaussian, b: Gaussian) -> Gaussian:
    """With common factors: the difference varies by v1 + v2 - 2 c, and factors mix by who wins."""
    (m1, v1), (m2, v2) = a.moments, b.moments
    f1, f2 = a.factors, b.factors
    apart = a.own_variance + b.own_variance + (f1 - f2).square().sum(0)  # type: ignore[operator]
    signed = signed_deviations(m1 - m2, apart)
    x, wins = signed.abs(), cdf(signed)
    excess = tails(x).excess
    mean = torch.maximum(m1, m2) + root(apart) * excess
    variance = v1 * wins + v2 * (1 - wins) - apart * excess * (x + excess)
    factors = f1 * wins + f2 * (1 - wins)  # type: ignore[operator]
    return Gaussian.trusted(mean, torch.maximum(variance, factors.square().sum(0)), factors)


def _pool_along(
    x: Gaussian, dim: int, *, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool
) -> Gaussian:
    size, extent = x.shape[dim], dilation * (kernel - 1) + 1
    room = size + 2 * padding - extent
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1  # a window may not start in the padding beyond the end
    after = max((count - 1) * stride + extent - size - padding, 0)
    if padding or after:
        x = F.pad(x, [0, 0] * (x.dim() - 1 - dim) + [padding, after], value=LOWEST)  # type: ignore[arg-type,assignment]
    last = (count - 1) * stride + 1
    index = (slice(None),) * dim
    starts = [offset * dilation for offset in range(kernel)]
    return _reduce([x[(*index, slice(start, start + last, stride))] for start in starts])


def _reduce(parts: Sequence[Gaussian]) -> Gaussian:
    while len(parts) > 1:
        pairs = [larger(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


def _of(value: Any, dimension: int, count: int) -> int:
    if isinstance(value, int):
        return value
    values = [int(v) for v in value]
    return values[dimension] if len(values) == count else values[0]
