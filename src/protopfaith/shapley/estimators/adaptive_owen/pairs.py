"""Coalitions beside their complements: half the difference of their values is the odd part of a game.

A game has the values of its odd part, and that is linear where at most two players act together. A few
coalitions and their complements tell whether it is; then the others are drawn in pairs, too, which are not
worth their evaluations in other games. A pair is one unit: neither half is predicted by what has seen the
other, and errors are those of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.constants import remembered
from protopfaith.shapley.estimators.adaptive_owen.coalitions import masks_of_sizes

SPARE = 32  # pairs that there must be beyond the unknowns
SMALLEST, LARGEST = 256, 1024  # samples whose complements are drawn after them
FEW = 32  # outputs: with more, one that gains from pairs would cost too many others
PROBES = 16  # pairs at the end of these samples, after which the complements of the others are decided on
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
    while half - PROBES < n + SPARE:
        half *= 2
    return half if half <= LARGEST else 0


@dataclass(frozen=True)
class Layout:
    """Which of the samples are complements of others, by their numbers."""

    half: int = 0  # samples of which there are complements: the last ones are `probes` and these of them
    probes: int = 0
    mirrored: bool = False  # the complements of the others follow from number `half` on
    paired: bool = False  # after those, every eight samples are followed by their complements

    @property
    def begin(self) -> int:
        """The number of the first probe."""
        return self.half - 2 * self.probes

    @property
    def end(self) -> int:
        """How many samples there are when all of the first ones have complements."""
        return self.half + self.begin

    def partners(self, count: int) -> Tensor:
        """The number of the complement of each of the first `count` samples, the own one where there is none.

        >>> Layout(half=8, probes=2, mirrored=True).partners(12).tolist()
        [8, 9, 10, 11, 6, 7, 4, 5, 0, 1, 2, 3]
        """
        number = torch.arange(max(count, self.end))
        partner = torch.where((number >= self.end) & self.paired, number ^ STRIDE, number)
        middle = self.begin + self.probes
        partner[self.begin : middle] += self.probes
        partner[middle : self.half] -= self.probes
        if self.mirrored:
            partner[: self.begin] += self.half
            partner[self.half : self.end] -= self.half
        number, partner = number[:count], partner[:count]
        return torch.where(partner < count, partner, number)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which of `count` samples are complements of each other."""

    partner: Tensor  # (count,): the number of each sample's complement, the own number where it has none
    alone: Tensor  # (count,): those that have none
    units: Tensor  # numbers of the samples that are alone or the first of a pair
    pairs: Tensor  # numbers of the first of each pair
    layout: Layout

    @staticmethod
    @remembered(64)
    def of(count: int, layout: Layout, device: torch.device) -> Pairing:
        number, partner = torch.arange(count), layout.partners(count)
        units, pairs = (partner >= number).nonzero()[:, 0], (partner > number).nonzero()[:, 0]
        partner, alone, units, pairs = (t.to(device) for t in (partner, partner == number, units, pairs))
        return Pairing(partner, alone, units, pairs, layout)

    @staticmethod
    def none(count: int, device: torch.device) -> Pairing:
        return Pairing.of(count, Layout(), device)

    def first(self, count: int) -> Pairing:
        """Of the first samples alone."""
        return Pairing.of(count, self.layout, self.partner.device)

    def completed(self, before: Tensor, drawn: Tensor, keys: Callable[[], Tensor]) -> Tensor:
        """The masks that were drawn after those `before`: probes in fours, by random `keys` (see
        `rearranged`), and seconds of pairs replaced by complements."""
        if not (self.layout.probes or len(self.pairs)):
            return drawn
        masks = torch.cat([before, drawn])
        begin, four = self.layout.begin, self.layout.probes // 4
        if len(before) < self.layout.half and len(masks) > begin + 2 * four:
            others = rearranged(masks[begin : begin + four], masks[begin + four : begin + 2 * four], keys())
            place = slice(begin + 2 * four, begin + 4 * four)
            masks[place] = others[: len(masks[place])]
        number = torch.arange(len(self.partner), device=drawn.device)
        masks = torch.where((self.partner < number)[:, None], ~masks[self.partner], masks)
        return masks[len(before) :]

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


def rearranged(first: Tensor, second: Tensor, keys: Tensor) -> Tensor:
    """For masks S and T, (k, n) each, others U and then W (2k, n): as large as S and T, and together of the
    same players, so that a linear function has the same sum on them. Random `keys` (k, n) say which."""
    both, either = first & second, first ^ second
    chosen = masks_of_sizes(first.sum(1) - both.sum(1), torch.where(either, keys, 2.0))
    return torch.cat([both | chosen, both | (either & ~chosen)])


def seems_linear(values: Tensor, complements: Tensor, mean: Tensor, middle: Tensor) -> Tensor:
    """Of which outputs the odd part seems to be linear while the even part is not constant, (outputs,).

    Args:
        values: (PROBES, outputs), of masks S, T, U and W, a quarter each (see `rearranged`).
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
