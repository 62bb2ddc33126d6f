"""Operations that move random variables without changing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments.dispatch import calling_module, missing_rule, rule
from protopfaith.moments.gaussian import Gaussian, constant

_MOVES = (
    *("reshape", "reshape_as", "view", "view_as", "flatten", "unflatten", "squeeze", "unsqueeze"),
    *("permute", "transpose", "t", "swapaxes", "movedim", "moveaxis", "flip", "roll", "channel_shuffle"),
    *("__getitem__", "select", "narrow", "index_select", "chunk", "split", "tensor_split", "unbind"),
    *("expand", "expand_as", "broadcast_to", "repeat", "tile", "pixel_shuffle", "pixel_unshuffle"),
    *("contiguous", "clone", "detach", "__pos__"),
    *("to", "type_as", "float", "double", "half", "bfloat16", "cpu", "cuda"),
)
_AS_ANOTHER = {torch.Tensor.reshape_as, torch.Tensor.view_as, torch.Tensor.expand_as, torch.Tensor.type_as}
_MAY_CONVERT = {torch.Tensor.to, torch.Tensor.type_as, torch.Tensor.view}


@rule(*_MOVES)
def rearrange(function: Callable, input: Gaussian, *args: Any, **kwargs: Any) -> Any:
    """Mean and variance move alike."""
    if function in _AS_ANOTHER:  # whose form is all that counts
        args = tuple(x.moments[0] if isinstance(x, Gaussian) else x for x in args)
        kwargs = {name: x.moments[0] if isinstance(x, Gaussian) else x for name, x in kwargs.items()}
        if not isinstance(input, Gaussian):
            return function(input, *args, **kwargs)
    if not isinstance(input, Gaussian):
        raise missing_rule(function)
    moved = input.each(lambda x: function(x, *args, **kwargs))
    if function in _MAY_CONVERT and input.is_floating_point() and not moved.is_floating_point():
        raise ProtoPFaithError(
            f"Means and variances need floating-point numbers, not {moved.dtype}, which cuts them off; leave "
            "the conversion out, or take another type."
        )
    return moved


@rule("cat", "concat", "concatenate", "stack", "hstack", "vstack")
def concatenate(function: Callable, tensors: Sequence[Any], *args: Any, **kwargs: Any) -> Gaussian:
    """Means and variances are joined; constants join with variance zero."""
    like = max((x for x in tensors if isinstance(x, Gaussian)), key=lambda x: x.factors is not None)
    parts = [constant(x, like) for x in tensors]
    return type(like).joined(parts, lambda pieces: function(pieces, *args, **kwargs))


@rule("pad")
def pad(
    function: Callable, input: Gaussian, pad: Any, mode: str = "constant", value: float | None = None
) -> Any:
    """The mean is padded by the value, variance and factors by zero; other modes move them alike."""
    if mode != "constant":
        return input.each(lambda x: F.pad(x, pad, mode))

    def border(x: Any) -> Any:
        return F.pad(x, pad)

    return input.scale(lambda m: F.pad(m, pad, "constant", value), border, border, border)


@rule(
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
    "feature_dropout",
)
def dropout(function: Callable, input: Gaussian, p: float = 0.5, training: bool = False, *_: Any) -> Gaussian:
    """The identity, as dropout is in eval mode."""
    if training and p > 0:
        raise ProtoPFaithError(
            f"Dropout in {calling_module()} is active and has no moment rule; call model.eval() first."
        )
    return input


@rule(torch.Tensor.dim, torch.Tensor.size, torch.numel, torch.is_floating_point, torch.is_complex)
def form(function: Callable, input: Gaussian, *args: Any) -> Any:
    """Questions about form are answered by the mean."""
    return function(input.moments[0], *args)
