"""Numbers of maps: how far two go together, and how much of one lies on an object."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import tensor
from protopfaith.errors import ProtoPFaithError

ROUNDING = 1e-14
"""What is left of a constant map when its mean is subtracted, as a share of it."""


def pearson(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's correlation along the last dimension, (..., n) to (...).

    Zero where one of them is constant: a constant map tells nothing of another one, and must not drop out of
    a mean over maps as NaN would.

    >>> pearson(torch.tensor([[5.0, 3.0, 5.0, 3.0], [2.0] * 4]), torch.tensor([1.0, 0, 1, 0])).tolist()
    [1.0, 0.0]
    """
    a, b = _standardized(a), _standardized(b)
    return (a * b).sum(-1)


def _standardized(values: Tensor) -> Tensor:
    """With mean zero and length one; zeros where all values are equal up to rounding."""
    values = values.double()
    centered = values - values.mean(-1, keepdim=True)
    size, whole = centered.norm(dim=-1, keepdim=True), values.norm(dim=-1, keepdim=True)
    return torch.where(size > ROUNDING * whole, centered / size, torch.zeros_like(centered))


def spearman(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's correlation of ranks, where equal values share their mean rank."""
    return pearson(ranks(a), ranks(b))


def ranks(values: Tensor) -> Tensor:
    """Mean ranks along the last dimension, from 0.

    >>> ranks(torch.tensor([0.5, -3.0, 0.5])).tolist()
    [1.5, 0.0, 1.5]
    """
    from scipy.stats import rankdata

    return torch.from_numpy(rankdata(values.detach().cpu().double().numpy(), axis=-1)) - 1


def share_inside(maps: Tensor, mask: Tensor) -> Tensor:
    """The share of the positive part of maps (..., H, W) that lies on `mask` (bool, H x W): (...).

    NaN where a map has no positive part. Chance is the mask's share of the pixels.

    Args:
        maps: (..., H, W)
        mask: where the object is, bool, H x W

    >>> mask = torch.tensor([[True, False], [True, True]])
    >>> share_inside(torch.tensor([[3.0, 1.0], [-5.0, 0.0]]), mask).item()
    0.75
    """
    check_arguments(share_inside, locals())
    tensor(mask, "A mask", "height x width", 2)
    if mask.dtype != torch.bool or maps.shape[-2:] != mask.shape:
        raise ProtoPFaithError(
            f"A mask is bool and of the maps' size, not {mask.dtype} of {tuple(mask.shape)} for maps of "
            f"{tuple(maps.shape[-2:])}; convert it."
        )
    warm = maps.clamp_min(0)
    return warm[..., mask].sum(-1) / warm.sum((-2, -1))
