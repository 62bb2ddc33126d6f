"""Hiding regions of images: in training, so that a network knows what explanations show it, and in tests."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from protopfaith.augmentation import Hiding

BLURRED = 8
"""The side, in cells, of what is left of a blurred image."""


def hide(images: Tensor, hiding: Hiding, generator: torch.Generator) -> Tensor:
    """Normalized images (N x C x H x W) with random windows of some of them hidden.

    Args:
        images: after normalization
        hiding: how many, how large, and by what
        generator: decides everything; it may be on the CPU

    >>> generator = torch.Generator().manual_seed(0)
    >>> hidden = hide(torch.ones(4, 1, 32, 32), Hiding(share=1.0), generator)
    >>> hidden.unique().tolist()
    [0.0, 1.0]
    """
    if not hiding.share:
        return images
    count, _, height, width = images.shape

    def uniform(*shape: int) -> Tensor:
        values = torch.rand(*shape, generator=generator, device=generator.device)
        return values.to(images.device, non_blocking=True)

    smallest, largest = min(hiding.smallest, hiding.largest), max(hiding.smallest, hiding.largest)
    side = (smallest * (largest / smallest) ** uniform(count)).round()
    kept = uniform(count)
    kept = torch.where(uniform(count) < hiding.share, kept, 2.0)  # of the others nothing is hidden
    rows, columns = (_cells(size, side, uniform(count)) for size in (height, width))
    most = max(height, width) // smallest + 2
    lots = uniform(count, most, most)
    which = torch.arange(count, device=images.device)[:, None, None]
    hidden = lots[which, rows[:, :, None], columns[:, None, :]] > kept[:, None, None]
    if hiding.baseline == "color":
        instead = 2 * uniform(count, images.shape[1], 1, 1) - 1
    elif hiding.baseline == "blur":
        few = functional.adaptive_avg_pool2d(images, BLURRED)
        instead = functional.interpolate(few, (height, width), mode="bilinear", align_corners=False)
    else:
        instead = images.new_zeros(())
    return torch.where(hidden[:, None], instead.to(images.dtype), images)


def with_copies(images: Tensor, hiding: Hiding, generator: torch.Generator) -> Tensor:
    """Normalized images as they are, and after them copies of the first ones with hidden regions.

    Args:
        images: in random order, after normalization
        hiding: `share` says how many copies there are
        generator: decides what is hidden

    >>> both = with_copies(torch.ones(4, 1, 32, 32), Hiding(share=0.5), torch.Generator().manual_seed(0))
    >>> len(both), float(both[:4].min())
    (6, 1.0)
    """
    count = math.ceil(hiding.share * len(images))
    return torch.cat([images, hide(images[:count], replace(hiding, share=1.0), generator)])


def _cells(size: int, side: Tensor, shift: Tensor) -> Tensor:
    """The window that every row (or column) of each image belongs to: N x size."""
    places = torch.arange(size, device=side.device)
    return ((places + (shift * side)[:, None]) / side[:, None]).floor().long()


def hide_share(images: Tensor, share: float, side: int, generator: torch.Generator) -> Tensor:
    """Normalized images with this share of their windows hidden (zero), as many in each image.

    Args:
        images: N x C x H x W, after normalization
        share: of the windows
        side: of a window, in pixels
        generator: decides which, on the CPU

    >>> hidden = hide_share(torch.ones(2, 1, 32, 32), 0.5, 8, torch.Generator().manual_seed(0))
    >>> hidden.mean((1, 2, 3)).tolist()
    [0.5, 0.5]
    """
    count, _, height, width = images.shape
    down, across = -(-height // side), -(-width // side)
    order = torch.rand(count, down * across, generator=generator).argsort(dim=1).argsort(dim=1)
    kept = (order >= round(share * down * across)).reshape(count, 1, down, across).to(images)
    mask = functional.interpolate(kept, (down * side, across * side), mode="nearest")
    return images * mask[:, :, :height, :width]
