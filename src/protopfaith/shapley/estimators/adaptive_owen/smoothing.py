"""Empirical Bayes for maps: noisy values of players are drawn towards what their neighborhood makes likely.

Unbiased estimates are the true values plus errors of known size. Where a whole neighborhood shows nothing
beyond its errors, the values there are near zero; where it does, neighbors resemble each other. Both are
learned from the map itself:

    value_i ~ Normal(0, t_i^2), correlation between neighbors;  estimate_i ~ Normal(value_i, s_i^2)

with t^2 smooth over the image. The posterior mean has less error than the estimate, and its standard
deviation says how much is left: over the players of a map, not for each single one (a lone peak is drawn
down by its surroundings).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from protopfaith.constants import remembered
from protopfaith.shapley.players import Players

LARGEST_DENSE = 1024  # players, up to which neighbors' correlation is used; beyond, only the smooth t^2
REACH, SHARE = 2.0, 0.9  # correlation SHARE * exp(-distance / REACH), in units of the players' spacing
BROAD, NARROW = 1.5, 1.0  # widths of the smoothing of t^2, first from the estimates, then from the posterior
FLOOR = 0.02  # of the mean t^2, so that nothing is ruled out
STEPS, ROUGH_STEPS = 20, 8  # of conjugate gradients, for the result and for its prior
LARGEST_RATIO = 1e8  # t^2 / s^2, beyond which nothing is left to shrink
RATIOS = 96  # tabulated values of t^2 / s^2
LOWEST, HIGHEST = math.log(1e-6), math.log(1e8)  # of these, as natural logarithms


@dataclass(frozen=True)
class Neighborhood:
    """Where the players lie to each other: smoothing matrices and, for few players, correlations."""

    broad: Tensor
    narrow: Tensor
    correlation: Tensor | None = None  # (n, n)
    remaining: Tensor | None = None  # (n, RATIOS): posterior over prior variance, by t^2 / s^2

    @staticmethod
    def of(players: Players) -> Neighborhood:
        """Remembered for the last few sets of players: image after image has the same windows."""
        if players not in _REMEMBERED:
            labels = players.labels.cpu()
            _REMEMBERED[players] = labels.numpy().tobytes(), tuple(labels.shape)
        return _neighborhood(*_REMEMBERED[players], players.labels.device)

    @staticmethod
    def at(places: Tensor) -> Neighborhood:
        """Of players at `places` `(n, 3)`, in units of their distance."""
        broad, narrow = smoothing_matrix(places, BROAD), smoothing_matrix(places, NARROW)
        if len(places) > LARGEST_DENSE:
            return Neighborhood(broad, narrow)
        n = len(places)
        eye = torch.eye(n, dtype=places.dtype, device=places.device)
        correlation = (1 - SHARE) * eye + SHARE * torch.exp(-torch.cdist(places, places) / REACH)
        # Small matrices are faster on the CPU.
        where = places.device if n > 256 else torch.device("cpu")
        spectrum, vectors = (t.to(places.device) for t in torch.linalg.eigh(correlation.to(where)))
        ratios = torch.linspace(LOWEST, HIGHEST, RATIOS, dtype=places.dtype, device=places.device)
        remaining = vectors.square() @ (spectrum[:, None] / (1 + ratios.exp() * spectrum[:, None]))
        return Neighborhood(broad, narrow, correlation, remaining)


_REMEMBERED: WeakKeyDictionary[Players, tuple[bytes, tuple[int, ...]]] = WeakKeyDictionary()


@remembered(8)
def _neighborhood(labels: bytes, shape: tuple[int, ...], device: torch.device) -> Neighborhood:
    pixels = torch.frombuffer(bytearray(labels), dtype=torch.long).reshape(shape)
    return Neighborhood.at(positions(Players(pixels)).to(device))


def positions(players: Players) -> Tensor:
    """Centers of the players `(n, 3)` in units of their typical distance; channels lie one unit apart."""
    channels = players.labels.shape[0] if players.labels.dim() == 3 else 1
    height, width = players.image_size
    spacing = math.sqrt(height * width * channels / len(players))
    centers = players.centers
    return torch.cat([centers[:, :1], centers[:, 1:] / spacing], 1)


def smoothing_matrix(places: Tensor, width: float) -> Tensor:
    """Gaussian weights between places, rows summing to one: dense `(n, n)`, or sparse for many places."""
    if len(places) <= LARGEST_DENSE:
        weights = torch.exp(-torch.cdist(places, places).square() / (2 * width**2))
        return weights / weights.sum(1, keepdim=True)
    from scipy.spatial import cKDTree

    tree = cKDTree(places.cpu().numpy())
    pairs = tree.sparse_distance_matrix(tree, 3 * width, output_type="coo_matrix")
    index = torch.stack([torch.as_tensor(pairs.row), torch.as_tensor(pairs.col)]).long()
    weights = torch.exp(-torch.as_tensor(pairs.data).square() / (2 * width**2))
    sums = torch.zeros(len(places), dtype=weights.dtype).index_add_(0, index[0], weights)
    shape = (len(places), len(places))
    with warnings.catch_warnings():  # torch 2.11 warns of unchecked indices even where they are checked
        warnings.filterwarnings("ignore", "Sparse invariant checks", UserWarning)
        matrix = torch.sparse_coo_tensor(index, weights / sums[index[0]], shape, check_invariants=True)
        return matrix.coalesce().to(places.device)


def shrink(
    estimates: Tensor, variances: Tensor, near: Neighborhood, *, rough: bool = False
) -> tuple[Tensor, Tensor]:
    """Posterior mean and variance of the values, each `(outputs, n)`.

    `variances` are the squared standard errors of `estimates`. They are noisy themselves, so each is
    drawn half way (geometrically) to its output's mean. `rough` leaves out the second pass.
    """
    level, bound, noise = _drawn_to_their_mean(estimates, variances)
    mean, left = _smooth_posterior(estimates, noise, near, rough=rough)
    exact = level <= bound  # outputs without any error stay as they are
    return torch.where(exact, estimates, mean), torch.where(exact, 0, left)


def shrink_and_predict(
    estimates: Tensor, variances: Tensor, noise: Tensor, near: Neighborhood
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """What `shrink(estimates, variances)` gives, and what its neighbors say of each player without its own
    estimate, whose error has the variance `noise`: each a mean and a variance (outputs, n).

    Both in the same steps: on a GPU their number counts, not their size.
    """
    level, bound, drawn = _drawn_to_their_mean(estimates, variances)
    means, lefts = _smooth_posterior(torch.cat([estimates] * 2), torch.cat([drawn, noise]), near)
    (mean, of_others), (left, of_others_left) = means.chunk(2), lefts.chunk(2)
    exact = level <= bound
    smooth = torch.where(exact, estimates, mean), torch.where(exact, 0, left)
    return smooth, _without_own(estimates, noise, of_others, of_others_left)


def _without_own(estimates: Tensor, noise: Tensor, mean: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """What a posterior would be of each player, had it no estimate of its own.

    With A = C + N the covariance of the estimates y, y_i - (A^-1 y)_i / (A^-1)_ii is the mean of y_i given
    all others, and 1 / (A^-1)_ii its variance, which has N_i of the own noise in it.
    """
    unseen = ((noise - left) / noise).clamp(1e-6, 1)  # N_i (A^-1)_ii
    return estimates - (estimates - mean) / unseen, noise * (1 - unseen) / unseen


def _drawn_to_their_mean(estimates: Tensor, variances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The variances' mean, the least that counts, and the variances drawn half way to their mean."""
    level = variances.mean(1, keepdim=True)
    # An error far below the values' own size shrinks nothing; the bound keeps the ratios finite.
    bound = 1e-14 * estimates.square().mean(1, keepdim=True) + 1e-200
    return level, bound, torch.maximum((variances * level).sqrt(), bound)


def _smooth_posterior(
    estimates: Tensor, noise: Tensor, near: Neighborhood, *, rough: bool = False
) -> tuple[Tensor, Tensor]:
    """With t^2 first from the estimates, then (unless `rough`) from the posterior that this gives."""
    excess = estimates.square() - noise
    size = torch.maximum(excess.mean(1, keepdim=True), 0.05 * noise.mean(1, keepdim=True))
    prior = _smooth(excess, near.broad).clamp_min(0) + FLOOR * size
    mean, left = _posterior(estimates, noise, prior, near, ROUGH_STEPS)
    if rough:
        return mean, left
    prior = _smooth(mean.square() + left, near.narrow) + FLOOR * size
    return _posterior(estimates, noise, prior, near)


def _smooth(maps: Tensor, matrix: Tensor) -> Tensor:
    return (matrix @ maps.T).T


def _posterior(
    estimates: Tensor, noise: Tensor, prior: Tensor, near: Neighborhood, steps: int = STEPS
) -> tuple[Tensor, Tensor]:
    ratio = prior / noise
    if near.correlation is None or near.remaining is None:
        return estimates * ratio / (1 + ratio), prior / (1 + ratio)
    mean = _correlated_mean(estimates, noise, prior, near.correlation, steps)
    # The variance as if t^2 / s^2 were the same everywhere: within a percent of the exact one, without an
    # n x n inverse per output.
    place = ((ratio.log() - LOWEST) / (HIGHEST - LOWEST) * (RATIOS - 1)).clamp(0, RATIOS - 1.001)
    number = place.long()
    below, above = near.remaining.T.gather(0, number), near.remaining.T[1:].gather(0, number)
    return mean, torch.minimum(prior * torch.lerp(below, above, place.frac()), noise)


def _correlated_mean(
    estimates: Tensor, noise: Tensor, prior: Tensor, correlation: Tensor, steps: int = STEPS
) -> Tensor:
    """C (C + N)^-1 estimates with C = t R t, by conjugate gradients, for all outputs at once.

    Computed as estimates - N (C + N)^-1 estimates: whatever the iteration has not resolved is then a small
    part of the errors, not of the values.
    """
    scale = (prior / noise).clamp_max(LARGEST_RATIO).sqrt()
    deviation = noise.sqrt()
    # Few operations in a step: on a GPU starting them takes longer than doing them. So what is updated alike
    # lies together: minus the solution and the residual, from which the direction and its image under the
    # matrix are taken. Directions are those of the textbook over the squared residual, so that a step along
    # one is the direction over its curvature, and neither needs a ratio of scalar products.
    found, along = torch.zeros(2, 2, *estimates.shape, dtype=scale.dtype, device=scale.device)
    (solution, residual), (direction, image) = found, along
    torch.div(estimates, deviation, out=residual)
    tiny = torch.full_like(scale[:, :1, None], torch.finfo(scale.dtype).tiny)
    for _ in range(steps):
        direction.addcdiv_(residual, _products(residual, residual, tiny))
        torch.addcmul(direction, scale, (scale * direction) @ correlation, out=image)
        found.addcdiv_(along, _products(direction, image, tiny), value=-1)
    return torch.addcmul(estimates, deviation, solution)


def _products(a: Tensor, b: Tensor, tiny: Tensor) -> Tensor:
    """Scalar products of the rows, never zero: `(outputs, 1)`."""
    return torch.baddbmm(tiny, a[:, None], b[:, :, None])[..., 0]
