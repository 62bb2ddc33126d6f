"""Do validation images resemble training images more than each other? Then what they measure is too good."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

CLOSE = 0.5
"""A training image at less than this share of the distance of the nearest other validation image is close."""
SUSPICIOUS = 0.05
"""Share of the validation images with such a training image from which it is said."""
FEWEST = 3
CHUNK = 1_024


@torch.no_grad()
def close_share(train: Tensor, validation: Tensor) -> float:
    """The share of validation images that have a training image much nearer than any other of their own.

    Features are compared by direction. With images that are independent of each other the nearest of several
    times as many is only a little nearer; copies, frames of a film or images of one patient are much nearer.

    Args:
        train: features of the training images, N x channels
        validation: of the validation images, M x channels

    >>> same = torch.eye(4)
    >>> close_share(same, same)
    1.0
    """
    if len(validation) < 2 or not len(train):
        return 0.0
    mean = train.mean(0)
    theirs, ours = (functional.normalize(part.float() - mean, dim=1) for part in (train, validation))
    close = 0
    for start in range(0, len(ours), CHUNK):
        chunk = ours[start : start + CHUNK]
        among = torch.cdist(chunk, ours)
        rows = torch.arange(len(chunk), device=among.device)
        among[rows, rows + start] = torch.inf
        close += int((torch.cdist(chunk, theirs).amin(1) < CLOSE * among.amin(1)).sum())
    return close / len(ours)


def signs_of_leakage(train: Tensor, validation: Tensor) -> list[str]:
    """A sentence where `close_share` is suspicious."""
    share = close_share(train, validation)
    if share < SUSPICIOUS or share * len(validation) < FEWEST:
        return []
    return [
        f"{share:.0%} of the validation images resemble some training image far more than each other, as "
        "copies or images of one patient do; what they measure may be too good. Say which images belong "
        "together with --groups."
    ]
