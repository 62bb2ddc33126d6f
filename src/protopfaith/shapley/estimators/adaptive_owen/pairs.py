"""Coalitions beside their complements: half the difference of their values is the odd part of a game.

A game has the values of its odd part, and that is linear where at most two players act together. A few
coalitions and their complements tell whether it is; then the others are drawn in pairs, too, which are not
worth their evaluations in other games. A pair is one unit: neither half is predicted by what has seen the
other, and errors are those of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from protopfaith.shapley.estimators.adaptive_owen.coalitions import masks_of_sizes

SPARE = 32  # pairs that there must be beyond the unknowns
SMALLEST, LARGEST = 256, 1024  # samples whose complements are drawn after them
FEW = 32  # outputs: with more, one that gains from pairs would cost too many others
PROBES = 16  # complements of the first samples (see `rearranged`), after which the others are decided on
LINEAR = 0.01  # of the variance of the odd and of the even part: at most that much may not be linear
TINY = 1e-6  # of the odd part's variance: an even part that is smaller does no harm
STRIDE = 8  # samples between the halves of a later pair, which so share a stream and a fold


def mirrored(n: int, outputs: int = 1) -> int:
    """How many of the first samples may be followed by their complements: as many as tell the odd part of a
    game of `n` players; zero where that would be too many, and where there are many outputs.

    >>> [mirrored(n) for n in (20, 196, 400, 5000)], mirrored(196, outputs=1000)
    ([256, 256, 512, 0], 0)
    """
    if outputs > FEW:
        return 0
    half = SMALLEST
    while half < n + SPARE:
        half *= 2
    return half if half <= LARGEST else 0


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which of `count` samples are complements of each other."""

    partner: Tensor  # (count,): the number of each sample's complement, the own number where it has none
    units: Tensor  # numbers of the samples that are alone or the first of a pair
    pairs: Tensor  # numbers of the first of each pair
    half: int
    complements: int
    paired: bool

    @staticmethod
    @lru_cache(maxsize=64)
    def of(count: int, half: int, complements: int, paired: bool, device: torch.device) -> Pairing:
        """Samples from number `half` on are the `complements` of the first ones; of later ones, if they are
        `paired`, every eight are followed by their complements."""
        number = torch.arange(count)
        partner = torch.where((number >= 2 * half) & paired, number ^ STRIDE, number)
        partner[:complements] += half
        partner[half : half + complements] -= half
        partner = torch.where(partner < count, partner, number)
        units, pairs = (partner >= number).nonzero()[:, 0], (partner > number).nonzero()[:, 0]
        return Pairing(partner.to(device), units.to(device), pairs.to(device), half, complements, paired)

    @staticmethod
    def none(count: int, device: torch.device) -> Pairing:
        return Pairing.of(count, 0, 0, False, device)

    def first(self, count: int) -> Pairing:
        """Of the first samples alone."""
        return Pairing.of(count, self.half, self.complements, self.paired, self.partner.device)

    def completed(self, before: Tensor, drawn: Tensor) -> Tensor:
        """The masks that were drawn after those `before`, seconds of pairs replaced by complements."""
        number = torch.arange(len(self.partner), device=drawn.device)
        masks = torch.cat([before, drawn])
        masks = torch.where((self.partner < number)[:, None], ~masks[self.partner], masks)
        return masks[len(before) :]

    @property
    def alone(self) -> Tensor:
        return self.partner == torch.arange(len(self.partner), device=self.partner.device)

    def folded(self, left: Tensor) -> Tensor:
        """What residuals (..., m, outputs) add to the error: those of a pair their difference over the root
        of two, as their sum cancels."""
        if not len(self.pairs):
            return left
        difference = (left - left[..., self.partner, :]) / 2**0.5
        return torch.where(self.alone[:, None], left, difference)

    def merged(self, left: Tensor, scale: Tensor) -> Tensor:
        """Residuals of units (u, outputs), to be multiplied by the membership weights of their first samples,
        from those of samples (m, outputs) and what these count by (m,): complements have opposite weights."""
        counted = left * scale[:, None]
        if not len(self.pairs):
            return counted
        other = torch.where(self.alone[:, None], 0, counted[self.partner])
        return (counted - other)[self.units] * (len(self.units) / len(left))

    def without_each(self, right: Tensor, own: Tensor, beside: Callable[[Tensor], Tensor]) -> Tensor:
        """Solutions (..., m, outputs) of the blocks that the units have in a matrix: its diagonal `own` and,
        where each sample's row meets the column of its partner, `beside` of all partners, both (..., m)."""
        if not len(self.pairs):
            return right / own[..., None]
        beside_own = torch.where(self.alone, 0, beside(self.partner))[..., None]
        other = own[..., self.partner][..., None]
        return (other * right - beside_own * right[..., self.partner, :]) / (
            own[..., None] * other - beside_own.square()
        )


def rearranged(masks: Tensor, keys: Tensor) -> Tensor:
    """Masks (PROBES, n) in fours S, T, U, W: U and W are as large as S and T, and together have the same
    players, so that a linear function has the same sum on them. Random `keys` (PROBES / 4, n) say which."""
    first, second = masks.chunk(4)[:2]
    both, either = first & second, first ^ second
    chosen = masks_of_sizes(first.sum(1) - both.sum(1), torch.where(either, keys, 2.0))
    return torch.cat([first, second, both | chosen, both | (either & ~chosen)])


def seems_linear(values: Tensor, complements: Tensor, mean: Tensor, middle: Tensor) -> Tensor:
    """Of which outputs the odd part seems to be linear while the even part is not constant, (outputs,).

    Args:
        values: (PROBES, outputs), of `rearranged` masks.
        complements: of their complements.
        mean: (PROBES, outputs), of the even part at the densities of the masks.
        middle: (outputs,), between the values of all players and of none: linear games have no other even
            part.
    """
    odd, even = (values - complements) / 2, (values + complements) / 2
    first, second, third, fourth = odd.chunk(4)
    bent = (first - third + second - fourth).square().mean(0) / 4
    varied = ((first - third).square() + (second - fourth).square()).mean(0) / 4
    disturbing = torch.minimum((even - mean).square().mean(0), (even - middle).square().mean(0))
    return (bent < LINEAR * torch.minimum(varied, disturbing)) & (disturbing > TINY * varied)
