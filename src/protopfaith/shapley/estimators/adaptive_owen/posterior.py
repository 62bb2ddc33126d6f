"""What the values of players are likely to be, given noisy estimates of them: an empirical Bayes posterior.

A prior is a guess at where a value lies before its own estimate is looked at. There are three kinds of them:

1. it is zero: the player does nothing;
2. it is like most players of this output, wherever they lie: zero or their mean, give or take one of several
   widths;
3. it is like its neighbors: what they predict (`smoothing.py`), give or take what they leave open, which may
   be more or less than they say.

How often each is right is learned for each output from all its players (by expectation maximization), each
guess being judged by an estimate that it has not seen. So maps without any spatial order get no smoothing,
lone peaks are not drawn down by their surroundings, and error bars are as wide as guesses turned out to be
wrong.

Where estimates are mostly noise, guesses cannot be told apart player by player, and the mean over them is
poor. A map that is smooth as a whole (`smoothing.shrink`) is then the better estimate: it is taken for
outputs for which Stein's unbiased estimate of risk prefers it. Error bars stay the mixture's, about it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.constants import constant
from protopfaith.shapley.estimators.adaptive_owen.smoothing import Neighborhood, shrink_and_predict

# Of the guesses that know no neighbors: from a quarter of the noise to twice the largest estimate.
WIDTHS = 10
# By which neighbors leave more open, or less, than they say.
TRUST = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0)
ORDINARY = 4.0  # median distances from the median, where a player counts half for what is usual
GUESSES = 1 + 2 * WIDTHS + len(TRUST)
LARGEST_BLOCK = 1 << 23  # guesses that are judged together, so that many outputs do not take gigabytes
STEPS = 40  # of expectation maximization
# Players that count for each guess beforehand: none is ruled out by chance, and zero is what to doubt last.
COUNT, COUNT_OF_ZERO = 0.5, 5.0
FAR = 2.0  # squared distance from a guess, in units of its width, that error bars allow for
MOVED = 0.3  # standard errors that an estimate may be moved before the rest of the way is allowed for
FOUND = 10  # players whose sign is known, from which on the largest values are taken to be among them
CLEAR = 6.0  # standard errors of the largest value, from which on those that are hidden matter less


@dataclass(frozen=True)
class Posterior:
    """What is known of the values, each `(outputs, n)`.

    A posterior is right on average over all players. People look at the largest values, and those lie farther
    from any guess than most: shrinkage takes more from them than it takes on average. So its variance counts
    what is taken (`_Mixture.lost`) twice.
    """

    mean: Tensor
    variance: Tensor
    allowance: Tensor  # to be added to the variance for the values that people look at, see `_allowance`
    wrong_sign: Tensor  # the chance that a value is zero or has not the sign of its mean


def posterior(estimates: Tensor, variances: Tensor, noise: Tensor, near: Neighborhood) -> Posterior:
    """The posterior of values, given unbiased estimates of them.

    Args:
        estimates: `(outputs, n)`.
        variances: of their errors, as measured, `(outputs, n)`.
        noise: variances of their errors, as large as they may be, `(outputs, n)`.
        near: where the players lie.
    """
    rows = max(LARGEST_BLOCK // (estimates.shape[1] * GUESSES), 1)
    blocks = zip(estimates.split(rows), variances.split(rows), noise.split(rows), strict=True)
    found = [_of_block(*block, near=near) for block in blocks]
    if len(found) == 1:
        return found[0]
    parts = zip(*((one.mean, one.variance, one.allowance, one.wrong_sign) for one in found), strict=True)
    return Posterior(*map(torch.cat, parts))


def _of_block(estimates: Tensor, variances: Tensor, noise: Tensor, near: Neighborhood) -> Posterior:
    """Of some of the outputs, which know nothing of each other."""
    # An error far below the values' own size shrinks nothing; the bound keeps the ratios finite.
    bound = 1e-14 * estimates.square().mean(1, keepdim=True) + 1e-200
    exact = noise.mean(1, keepdim=True) <= bound  # outputs without any error stay as they are
    noise = torch.maximum(noise, bound)
    smooth, by_neighbors = shrink_and_predict(estimates, variances, noise, near)
    mixture = _Mixture.of(estimates, noise, _guesses(estimates, noise, by_neighbors))
    mean = _center(mixture, estimates, variances, noise, smooth)
    wrong_sign = mixture.wrong_sign(mean)
    hidden = mixture.flattened * _unfound(mean, noise, wrong_sign)
    nothing = torch.zeros_like(estimates)
    return Posterior(
        torch.where(exact, estimates, mean),
        torch.where(exact, nothing, mixture.variance(mean) + (FAR - 1) * mixture.lost),
        torch.where(exact, nothing, _allowance(estimates - mean, noise) + hidden),
        torch.where(exact, nothing, wrong_sign),
    )


@dataclass(frozen=True)
class _Guesses:
    """Where values lie and how widely they are spread there (a variance), each (outputs, n, guesses)."""

    centers: Tensor
    widths: Tensor


def _guesses(estimates: Tensor, noise: Tensor, by_neighbors: tuple[Tensor, Tensor]) -> _Guesses:
    """First zero; then zero and the usual value, give or take all widths; then the neighbors' predictions."""
    alone = _widths(estimates, noise)
    usual = _usual(estimates)[..., None]
    center, width = by_neighbors
    trust = constant(TRUST, noise.dtype, noise.device)
    nearby = width[..., None] * trust
    zero = torch.zeros_like(alone)
    centers = [zero[..., :1], zero, usual.expand_as(zero), center[..., None].expand_as(nearby)]
    return _Guesses(torch.cat(centers, 2), torch.cat([zero[..., :1], alone, alone, nearby], 2))


def _usual(estimates: Tensor) -> Tensor:
    """The mean of the players that are not far from most, `(outputs, 1)`.

    Not of all of them: where five players make the total, the others would be drawn to zero for want of a
    better guess, and what that takes from their sum would be given to the five.
    """
    middle = _median(estimates)
    away = estimates - middle
    near = ORDINARY**2 * _median(away.abs()).square() + 1e-200
    weight = near / (near + away.square())
    return torch.linalg.vecdot(weight, estimates)[:, None] / weight.sum(1, keepdim=True)


def _median(values: Tensor) -> Tensor:
    """Of each row, `(outputs, 1)`: the larger one of two. `median` has no deterministic kernel on a GPU."""
    half = values.shape[1] // 2
    return values.sort(1).values[:, half : half + 1]


def _widths(estimates: Tensor, noise: Tensor) -> Tensor:
    small = noise.mean(1) / 16
    large = torch.maximum(4 * estimates.square().amax(1), 64 * small)
    steps = torch.linspace(0, 1, WIDTHS, dtype=noise.dtype, device=noise.device)
    widths = small[:, None] * (large / small)[:, None] ** steps
    return widths[:, None].expand(-1, noise.shape[1], -1)


def _chances(away: Tensor, spread: Tensor) -> Tensor:
    """How likely each guess is for each player, whose estimate lies `away` from the guess, where its variance
    about the guess would be `spread`: each (outputs, n, guesses)."""
    log = -0.5 * (away.square() / spread + spread.log())
    likelihood = (log - log.amax(2, keepdim=True)).exp()
    joint = likelihood * _shares(likelihood.float())[:, None]
    return joint / joint.sum(2, keepdim=True)


def _shares(likelihood: Tensor) -> Tensor:
    """How often each guess is right, as all players (outputs, n, guesses) tell: (outputs, guesses), times
    all that counts (which stays the same, as each player says one in all)."""
    counts = torch.full_like(likelihood[:, 0], COUNT)
    counts[:, 0] = COUNT_OF_ZERO
    # New shares are the old ones times what the players say of them, plus what counts beforehand. So few
    # operations do, and none of the full size is written.
    players, guesses = likelihood.shape[1:]
    share = torch.full_like(counts, (players + COUNT_OF_ZERO + COUNT * (guesses - 1)) / guesses)
    transposed = likelihood.transpose(1, 2)
    for _ in range(STEPS):
        evidence = torch.bmm(likelihood, share[..., None])
        said = torch.bmm(transposed, evidence.reciprocal_())
        share = torch.addcmul(counts, share, said[..., 0])
    return share


@dataclass(frozen=True)
class _Mixture:
    """What each guess makes of each estimate, and how likely the guess is: (outputs, n, guesses)."""

    means: Tensor
    variances: Tensor
    chances: Tensor
    lost: Tensor  # (outputs, n): what shrinkage takes on average, as a square
    flattened: Tensor  # (outputs, n): the noise that guesses without neighbors take, as a square

    @staticmethod
    def of(estimates: Tensor, noise: Tensor, guesses: _Guesses) -> _Mixture:
        away, spread = estimates[..., None] - guesses.centers, guesses.widths + noise[..., None]
        gain = guesses.widths / spread
        means = torch.addcmul(guesses.centers, gain, away)
        chances = _chances(away, spread)
        taken = chances * (1 - gain).square()
        lost = (taken * guesses.widths).sum(2)
        flattened = taken[..., : 1 + 2 * WIDTHS].sum(2) * noise
        return _Mixture(means, gain * noise[..., None], chances, lost, flattened)

    def mean(self) -> Tensor:
        return (self.chances * self.means).sum(2)

    def variance(self, about: Tensor) -> Tensor:
        """The expected square of a value's distance from `about` (outputs, n)."""
        return (self.chances * (self.variances + (self.means - about[..., None]).square())).sum(2)

    def wrong_sign(self, values: Tensor) -> Tensor:
        """The chance that a value is zero or has not the sign of that in `values` (outputs, n)."""
        toward = self.means * values.sign()[..., None] / self.variances.sqrt().clamp_min(1e-150)
        wrong = torch.where(self.variances > 0, torch.special.erfc(toward / math.sqrt(2)) / 2, 1.0)
        return (self.chances * wrong).sum(2)


def _center(
    mixture: _Mixture, estimates: Tensor, variances: Tensor, noise: Tensor, smooth_map: tuple[Tensor, Tensor]
) -> Tensor:
    """The mixture's mean, or the smooth map for outputs whose estimated risk it lowers: (outputs, n).

    Stein: the risk is, up to what both have in common, the sum of (mean - estimate)^2 + 2 N dmean/destimate,
    and for a posterior N dmean/destimate is its variance.
    """
    mean = mixture.mean()
    smooth, left = smooth_map
    spread = mixture.variance(mean) * variances / noise  # as wide as the errors, not as they may be
    risks = [
        ((m - estimates).square() + 2 * v).sum(1, keepdim=True) for m, v in ((smooth, left), (mean, spread))
    ]
    return torch.where(risks[0] < risks[1], smooth, mean)


def _allowance(moved: Tensor, noise: Tensor) -> Tensor:
    """What error bars need beyond the posterior's variance: where an estimate was moved by more than part of
    its own error, the guess may have been wrong."""
    return (moved.abs() - MOVED * noise.sqrt()).clamp_min(0).square()


def _unfound(mean: Tensor, noise: Tensor, wrong_sign: Tensor) -> Tensor:
    """To what extent the largest values of an output may still be hidden in the noise, 0 to 1: (outputs, 1).

    Where hardly any player stands out, most guesses say zero, and a few values as large as the noise cannot
    be told from none. The error bars of such an output are those of its noise.
    """
    found = (wrong_sign < 0.05).to(mean).sum(1, keepdim=True)
    clear = mean.square().amax(1, keepdim=True) / (CLEAR**2 * noise.mean(1, keepdim=True))
    return (1 - found / FOUND).clamp_min(0) / clear.clamp_min(1)
