"""Coalitions drawn by their size: how often each size, then which players."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.constants import remembered

BINS = 16  # of sizes, for the allocation
UNIFORM = 0.2  # share of samples whose sizes stay uniform, whatever the measured variance says
MOST_SORTED = 2048  # players up to which a GPU draws masks by sorting; beyond, by a threshold
KEY_BITS = 31
GOLDEN = (5**0.5 - 1) / 2


def allocate(variance: Tensor, sizes: Tensor, n: int) -> Tensor:
    """Chances `(..., n-1)` of the sizes 1 ... n-1 that the samples' shares `variance` `(..., m)` of all
    variance call for (Neyman), with samples of the `sizes` `(m,)`.

    Within bins of sizes, narrower towards the ends, chance goes as the root of the variance per size.
    """
    bin_of, inside, width, per_size = _bins(n, sizes.device)
    # A bin in which no sample fell by chance is not without variance.
    share = torch.add(0.1 * width, variance @ inside[sizes - 1], alpha=0.9)
    density = (share * per_size).sqrt()[..., bin_of]
    return (1 - UNIFORM) * density / density.sum(-1, keepdim=True) + UNIFORM / (n - 1)


@remembered(8)
def _bins(n: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bin of each size 1 ... n-1, whether it is in each bin (n-1, BINS), the share of all sizes that each
    bin has, and one over that: zero for a bin without any."""
    grid = torch.sin(torch.linspace(0, torch.pi / 2, BINS + 1, dtype=torch.float64, device=device)).square()
    edges = (grid * (n - 1)).round()[1:-1]
    bin_of = torch.bucketize(torch.arange(n - 1, device=device, dtype=torch.float64), edges, right=True)
    inside = torch.eye(BINS, dtype=torch.float64, device=device)[bin_of]
    width = inside.mean(0)
    return bin_of, inside, width, torch.where(width > 0, 1 / width, 0)


def spread_sizes(chance: Tensor, start: int, count: int, shift: Tensor | float) -> Tensor:
    """Sizes of 1 ... n-1 by `chance` `(..., n-1)`, of the samples from number `start` on, `(..., count)`.

    They follow the multiples of the golden ratio, from a random `shift` on: wherever one begins and ends,
    they are spread as evenly as can be.
    """
    place = (shift + _multiples(start, count, chance.device)) % 1.0
    until = chance.cumsum(-1)
    # The last of these is one, which no place reaches: so no size is too large.
    return 1 + torch.searchsorted(until / until[..., -1:], place.expand(*chance.shape[:-1], -1).contiguous())


@remembered(16)
def _multiples(start: int, count: int, device: torch.device) -> Tensor:
    """Of the golden ratio, of which the phases of all games have the same."""
    return torch.arange(start, start + count, dtype=torch.float64, device=device) * GOLDEN


def random_keys(count: int, n: int, generator: torch.Generator) -> Tensor:
    """What `masks_of_sizes` orders players by, `(count, n)`: numbers, or integers where a GPU has many."""
    if _by_threshold(n, generator.device):
        shape, most = (count, n), 2**KEY_BITS - 1
        return torch.randint(most, shape, generator=generator, device=generator.device, dtype=torch.int32)
    return torch.rand(count, n, generator=generator, device=generator.device)


def masks_of_sizes(sizes: Tensor, keys: Tensor) -> Tensor:
    """Masks `(m, n)` with `sizes` players each, those with the smallest of the random `keys` `(m, n)`."""
    if not keys.is_floating_point():
        return _masks_by_threshold(sizes, keys)
    order = keys.argsort(1)
    ranked = torch.arange(keys.shape[1], device=sizes.device) < sizes[:, None]
    return torch.zeros_like(ranked).scatter_(1, order, ranked)


def _by_threshold(n: int, device: torch.device) -> bool:
    return n > MOST_SORTED and device.type != "cpu"


def _masks_by_threshold(sizes: Tensor, keys: Tensor) -> Tensor:
    """The players whose random keys lie below the threshold that as many keys as asked lie below, which is
    found bit by bit: a GPU counts much faster than it sorts (a CPU does not). Of equal keys at the threshold
    (one mask in 100,000 has any) the first ones count."""
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
