"""Batch norms that keep their means and variances while the rest of an encoder is trained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


def batch_norms(encoder: nn.Module) -> list[_BatchNorm]:
    """Those that keep means and variances.

    Args:
        encoder: any module
    """
    norms = [module for module in encoder.modules() if isinstance(module, _BatchNorm)]
    return [norm for norm in norms if norm.track_running_stats]


def hold_batch_norm(encoder: nn.Module) -> None:
    """Puts batch norms into evaluation mode and leaves all else in training mode: means and variances stay
    those that a probe was fitted to.

    Args:
        encoder: any module
    """
    for norm in batch_norms(encoder):
        norm.eval()


@contextmanager
def held_batch_norm(encoder: nn.Module) -> Iterator[None]:
    """Inside, batch norms are in evaluation mode; afterwards each is as it was.

    So a pass does not change what whole images are normalized with, and is what the trained network will do.

    Args:
        encoder: any module

    >>> norm = nn.BatchNorm2d(1)
    >>> with held_batch_norm(norm):
    ...     norm.training
    False
    >>> norm.training
    True
    """
    following = [norm for norm in batch_norms(encoder) if norm.training]
    hold_batch_norm(encoder)
    try:
        yield
    finally:
        for norm in following:
            norm.train()
