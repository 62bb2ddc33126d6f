"""Samples that are not kept: their powers are added up."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

SUMS = ("sum", "squares", "fourths")  # over the samples that are not kept, of r w, (r w)^2 and (r w)^4


def moved_sums(sums: Sequence[Tensor], count: Tensor, shift: Tensor) -> list[Tensor]:
    """The sums over `count` samples of y, y^2 and y^4, for y + shift; of the last without what y^3 adds,
    which nobody keeps."""
    first, squares, fourths = sums
    square = shift.square()
    return [
        first + count * shift,
        squares + 2 * shift * first + count * square,
        fourths + 6 * square * squares + 4 * shift * square * first + count * square.square(),
    ]


def weighted_sums(masks: Tensor, sizes: Tensor, residuals: Tensor, chance: Tensor) -> list[Tensor]:
    r"""Sums over the samples of r w_i, of (r w_i)^2 and of (r w_i)^4, each (outputs, n), with the weights
    w_i = (x_i - p) / (p (1 - p) n chance), `chance` (m,) being that of each sample's size.

    Memberships are 0 or 1, so (x_i - p)^k takes two values, $(1 - p)^k$ and $(-p)^k$: with c the factor of
    x_i - p each is a sum of multiples of x_i, $\sum (rc)^k ((1 - p)^k - (-p)^k)\, x_i + \sum (rc)^k (-p)^k$.
    One matrix product gives them, and no weights are written down.
    """
    n = masks.shape[1]
    p = (sizes.double() / n)[:, None]
    first = residuals / (p * (1 - p) * (n * chance)[:, None])
    powers = [(first, 1), (first.square(), 2), (first.square().square(), 4)]
    factors = torch.cat([r * ((1 - p) ** k - (-p) ** k) for r, k in powers], 1)
    sums = (factors.T @ masks.double()).chunk(3)
    return [total + (r * (-p) ** k).sum(0)[:, None] for total, (r, k) in zip(sums, powers, strict=True)]
