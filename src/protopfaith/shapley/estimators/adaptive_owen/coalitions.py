"""Coalitions drawn by their size: how often each size, then which players."""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 16  # of sizes, for the allocation
UNIFORM = 0.2  # share of samples whose sizes stay uniform, whatever the measured variance says
MOST_SORTED = 2048  # players up to which a GPU draws masks by sorting; beyond, by a threshold
KEY_BITS = 31
GOLDEN = (5**0.5 - 1) / 2


def allocate(variance: Tensor, sizes: Tensor, n: int) -> Tensor:
    """Chances of the sizes 1 ... n-1 that the samples' shares `variance` of all variance call for (Neyman).

    Within bins of sizes, narrower towards the ends, chance goes as the root of the variance per size.
    """
    grid = torch.sin(
        torch.linspace(0, torch.pi / 2, BINS + 1, dtype=torch.float64, device=sizes.device)
    ).square()
    edges = (grid * (n - 1)).round()[1:-1]
    bin_of = torch.bucketize(torch.arange(n - 1, device=sizes.device, dtype=torch.float64), edges, right=True)
    width = torch.bincount(bin_of, minlength=BINS).double() / (n - 1)
    share = torch.zeros(BINS, dtype=torch.float64, device=sizes.device)
    share = share.index_add_(0, bin_of[sizes - 1], variance)
    share = 0.9 * share + 0.1 * width  # a bin in which no sample fell by chance is not without variance
    density = torch.where(width > 0, share / width.clamp_min(1e-300), 0).sqrt()[bin_of]
    return (1 - UNIFORM) * density / density.sum() + UNIFORM / (n - 1)


def spread_sizes(chance: Tensor, start: int, count: int, shift: float) -> Tensor:
    """Sizes of 1 ... n-1 by `chance`, of the samples from number `start` on, `(count,)`.

    They follow the multiples of the golden ratio, from a random `shift` on: wherever one begins and ends,
    they are spread as evenly as can be.
    """
    number = torch.arange(start, start + count, dtype=torch.float64, device=chance.device)
    place = (shift + number * GOLDEN) % 1.0
    below = torch.searchsorted(chance.cumsum(0) / chance.sum(), place)
    return 1 + below.clamp_max(len(chance) - 1)


def masks_of_sizes(sizes: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Masks `(m, n)` with `sizes` players each, uniform among those."""
    if n > MOST_SORTED and sizes.device.type != "cpu":
        return masks_by_threshold(sizes, n, generator)
    keys = torch.rand(len(sizes), n, generator=generator, device=sizes.device)
    order = keys.argsort(1)
    ranked = torch.arange(n, device=sizes.device) < sizes[:, None]
    return torch.zeros(len(sizes), n, dtype=torch.bool, device=sizes.device).scatter_(1, order, ranked)


def masks_by_threshold(sizes: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """The players whose random keys lie below the threshold that as many keys as asked lie below, which is
    found bit by bit: a GPU counts much faster than it sorts (a CPU does not). Of equal keys at the threshold
    (one mask in 100,000 has any) the first ones count."""
    shape = (len(sizes), n)
    keys = torch.randint(2**KEY_BITS - 1, shape, generator=generator, device=sizes.device, dtype=torch.int32)
    threshold = torch.zeros(len(sizes), 1, dtype=torch.int32, device=sizes.device)
    wanted = sizes[:, None]
    for bit in reversed(range(KEY_BITS)):
        higher = threshold + (1 << bit)
        threshold = torch.where((keys < higher).sum(1, keepdim=True) <= wanted, higher, threshold)
    masks = keys < threshold
    missing = wanted - masks.sum(1, keepdim=True)
    if bool((missing > 0).any()):
        equal = keys == threshold
        masks |= equal & (equal.cumsum(1, dtype=torch.int32) <= missing)
    return masks
