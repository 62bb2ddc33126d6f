"""Linear maps: the mean as usual, independent variance through squared weights, common factors like the
mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments.dispatch import calling_module, missing_rule, rule
from protopfaith.moments.gaussian import Gaussian


@rule("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear")
def weighted_sum(
    function: Callable, input: Any, weight: Any, bias: Tensor | None = None, *args: Any, **kwargs: Any
) -> Gaussian:
    """y = W x + b: mean = W m + b; variance = W^2 v (squares elementwise)."""
    if not isinstance(input, Gaussian) or isinstance(weight, Gaussian):
        raise missing_rule(function)

    def squared(v: Tensor) -> Tensor:
        found = function(v, weight.square(), None, *args, **kwargs)
        # Fast convolutions (Winograd, FFT) subtract, too: what adds up to nearly nothing can fall below zero.
        return found.clamp_min(0) if weight[0, 0].numel() > 1 else found

    return input.linear_map(
        lambda m: function(m, weight, bias, *args, **kwargs),
        lambda f: function(f, weight, None, *args, **kwargs),
        squared,
        _reach(function, weight, *args, **kwargs),
        (function, weight, weight._version, bias, args, kwargs),
    )


@rule(F.batch_norm)
def batch_norm(  # noqa: PLR0917  (as torch has it)
    function: Callable,
    input: Gaussian,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *_: Any,
) -> Gaussian:
    """y = (x - r) w / sqrt(s + eps) + b with stored r, s: mean likewise; variance = v w^2 / (s + eps)."""
    if training or running_mean is None or running_var is None:
        raise ProtoPFaithError(
            f"Batch norm in {calling_module()} takes its statistics from the batch, which has no moment "
            "rule; call model.eval() first."
        )
    scale = (running_var + eps).rsqrt() if weight is None else weight * (running_var + eps).rsqrt()
    scale = scale.reshape(-1, *(1,) * (input.dim() - 2))
    return input.scale(
        lambda m: F.batch_norm(m, running_mean, running_var, weight, bias, False, 0.0, eps),
        lambda f: f * scale,
        lambda v: v * scale.square(),
    )


@rule(torch.batch_norm)
def batch_norm_by_torch(  # noqa: PLR0917  (torch has another order than its functional form)
    function: Callable,
    input: Gaussian,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Gaussian:
    """As batch_norm."""
    return batch_norm(function, input, running_mean, running_var, weight, bias, training, momentum, eps)


@rule("avg_pool1d", "avg_pool2d", "avg_pool3d")
def average_pool(function: Callable, input: Gaussian, *args: Any, **kwargs: Any) -> Gaussian:
    """y = sum(x) / n over a window: mean = sum(m) / n; variance = sum(v) / n^2."""

    def pool(x: Tensor) -> Tensor:
        return function(x, *args, **kwargs)

    mean, _ = input.moments
    count = _window_sizes(function, torch.ones_like(mean[:1, :1]), *args, **kwargs)
    return input.linear_map(pool, pool, lambda v: pool(v) / count)


@rule("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")
def adaptive_average_pool(function: Callable, input: Gaussian, output_size: Any) -> Gaussian:
    """As average_pool, with the windows that lead to `output_size`."""

    def pool(x: Tensor) -> Tensor:
        return function(x, output_size)

    mean, _ = input.moments
    pooled = pool(mean)
    spatial = pooled.dim() - 2 if pooled.dim() > 2 else 1
    count = torch.ones((), dtype=mean.dtype, device=mean.device)
    for dimension in range(-spatial, 0):
        sizes = _adaptive_sizes(mean.shape[dimension], pooled.shape[dimension])
        count = count * torch.tensor(sizes, dtype=mean.dtype, device=mean.device).reshape(
            -1, *(1,) * (-dimension - 1)
        )
    return input.linear_map(pool, pool, lambda v: pool(v) / count)


@rule("sum")
def total(function: Callable, input: Gaussian, *args: Any, **kwargs: Any) -> Gaussian:
    """y = sum of x over dimensions: mean = sum(m); variance = sum(v)."""

    def add(x: Tensor) -> Tensor:
        return torch.sum(x, *args, **kwargs)

    return input.linear_map(add, add, add)


@rule("mean")
def average(function: Callable, input: Gaussian, *args: Any, **kwargs: Any) -> Gaussian:
    """y = mean of x over n variables: mean = mean(m); variance = sum(v) / n^2."""

    def average(x: Tensor) -> Tensor:
        return torch.mean(x, *args, **kwargs)

    form = torch.empty(input.shape, dtype=input.dtype, device="meta")
    count = form.numel() / max(average(form).numel(), 1)
    return input.linear_map(average, average, lambda v: average(v) / count)


def _reach(function: Callable, weight: Tensor, *args: Any, **kwargs: Any) -> tuple[int, ...] | None:
    """How many inputs one output of a convolution sees, along each dimension."""
    if function not in (torch.conv1d, torch.conv2d, torch.conv3d):
        return None
    dilation = args[2] if len(args) > 2 else kwargs.get("dilation", 1)
    kernel = weight.shape[2:]
    dilations = (dilation,) * len(kernel) if isinstance(dilation, int) else tuple(dilation)
    return tuple(d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True))


def _window_sizes(  # noqa: PLR0917  (as torch has it)
    function: Callable,
    ones: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """What an average pool divides by at every position: the sum of ones over their average."""
    if function is torch.avg_pool1d:
        wide = _window_sizes(
            F.avg_pool2d,
            ones.unsqueeze(-2),
            (1, *_one(kernel_size)),
            None if stride is None else (1, *_one(stride)),
            (0, *_one(padding)),
            ceil_mode,
            count_include_pad,
        )
        return wide.squeeze(-2)
    window = (kernel_size, stride, padding, ceil_mode, count_include_pad)
    return function(ones, *window, 1) / function(ones, *window, divisor_override)


def _one(value: Any) -> tuple[int]:
    return (int(value),) if isinstance(value, int) else (int(value[0]),)


def _adaptive_sizes(inside: int, outside: int) -> list[int]:
    return [-(-(i + 1) * inside // outside) - i * inside // outside for i in range(outside)]


@rule("layer_norm")
def layer_norm(  # noqa: PLR0917  (torch's own arguments)
    function: Callable,
    input: Gaussian,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Gaussian:
    """y = w c / S + b with c = x - average(x), S^2 = average(c^2) + eps: the mean to second order in the
    deviation of S^2 from its expectation, the variance to first order. Exact at zero variance."""
    if not isinstance(input, Gaussian):
        raise missing_rule(function)
    dims = tuple(range(-len(normalized_shape), 0))
    count = math.prod(normalized_shape)

    def center(x: Tensor) -> Tensor:
        return x - x.mean(dims, keepdim=True)

    def squared(v: Tensor) -> Tensor:
        return v * (1 - 2 / count) + v.sum(dims, keepdim=True) / count**2

    centered = input.linear_map(center, center, squared)
    m, v = centered.moments
    scale = (m.square() + v).mean(dims, keepdim=True) + eps  # E S^2
    own = centered.own_variance
    # Var S^2 / (E S^2)^2, and the covariance of each c with S^2: large c come with large S.
    spread = (2 * v.square() + 4 * v * m.square()).sum(dims, keepdim=True) / (count * scale).square()
    mean = m * scale.rsqrt() * (1 + 0.375 * spread - v / (count * scale))
    spread = (2 * own.square() + 4 * own * m.square()).sum(dims, keepdim=True) / (count * scale).square()
    variance = own + m.square() * (spread / 4 - 2 * own / (count * scale))
    variance, factors = variance.clamp_min(0) / scale, centered.factors
    if factors is not None:
        factors = (factors - m * (m * factors).mean(dims, keepdim=True) / scale) * scale.rsqrt()
        variance = variance + factors.square().sum(0)
    result = Gaussian.trusted(mean, variance, factors)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


@rule("group_norm")
def group_norm(  # noqa: PLR0917  (torch's own arguments)
    function: Callable,
    input: Gaussian,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Gaussian:
    """As layer_norm, of the channels and positions of each group."""
    if not isinstance(input, Gaussian):
        raise missing_rule(function)
    channels = (-1, *(1 for _ in input.shape[2:]))
    parts = input.reshape(len(input), num_groups, -1)
    result = layer_norm(F.layer_norm, parts, parts.shape[-1:], eps=eps).reshape(input.shape)
    result = result if weight is None else result * weight.view(channels)
    return result if bias is None else result + bias.view(channels)
