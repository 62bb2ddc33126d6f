"""Inverses of triangular matrices, by few large matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.constants import remembered

SIDE = 256  # of blocks that are inverted by substitution, which takes a GPU as many steps as they have rows


def inverse_of_lower(matrix: Tensor) -> Tensor:
    """The inverse of lower triangular matrices `(..., m, m)`.

    Of [[a, 0], [b, c]] it is [[a', 0], [-c' b a', c']] with the inverses a' and c': so blocks along the
    diagonal are inverted, all at once, and then joined two by two until one is left.

    >>> inverse_of_lower(torch.tensor([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, 0.0], [-0.5, 1.0]]
    """
    m, side = matrix.shape[-1], SIDE
    while side < m:
        side *= 2
    whole = _eye(side, matrix.dtype, matrix.device).repeat(*matrix.shape[:-2], 1, 1)
    whole[..., :m, :m] = matrix
    side, eye = SIDE, _eye(SIDE, matrix.dtype, matrix.device)
    inverse = torch.linalg.solve_triangular(_diagonal_blocks(whole, side), eye, upper=False)
    while side < whole.shape[-1]:
        below = _diagonal_blocks(whole, 2 * side)[..., side:, :side]
        first, second = inverse[..., ::2, :, :], inverse[..., 1::2, :, :]
        joined = inverse.new_zeros(*first.shape[:-2], 2 * side, 2 * side)
        joined[..., :side, :side], joined[..., side:, side:] = first, second
        torch.neg(second @ below @ first, out=joined[..., side:, :side])
        inverse, side = joined, 2 * side
    return inverse[..., 0, :m, :m]


@remembered(8)
def _eye(side: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.eye(side, dtype=dtype, device=device)


def _diagonal_blocks(matrix: Tensor, side: int) -> Tensor:
    """`(..., blocks, side, side)`."""
    parts = matrix.unflatten(-1, (-1, side)).unflatten(-3, (-1, side))  # (..., block, row, block, column)
    return parts.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)
