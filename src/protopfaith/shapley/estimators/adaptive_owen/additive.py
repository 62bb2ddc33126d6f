"""The additive game that is nearest to the samples: exact where players do not act together.

v^(x) = u'x + c(p), with c a function of the density p, fitted by least squares. Its Shapley values are u_i,
and an equal share of the rest. The surrogate shrinks its effects and lets them change with density, so it
needs many more samples to see that a game is as simple as this.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.shapley.densities import KNOTS, hat_functions, roughness
from protopfaith.shapley.estimators.adaptive_owen.pairs import SPARE, Pairing
from protopfaith.shapley.game import Game

CLEARLY = 0.5  # of what the surrogate leaves over: the additive game predicts an output where it leaves less
ABOUT = 1.1  # of what a fit to all samples leaves over: the odd part, of which it need not know more, may
EXACT = 1e-12  # of the values' variance: what is left over of an output that is solved
MOSTLY = 0.9  # of all samples must have complements where the others are not to count
RIDGE = 1e-9


@dataclass(frozen=True)
class Additive:
    """u and c of every output."""

    effects: Tensor  # (outputs, n)
    curve: Tensor  # (knots, outputs)

    def __call__(self, masks: Tensor) -> Tensor:
        """Predictions `(b, outputs)` for masks `(b, n)`."""
        return terms(masks) @ torch.cat([self.effects.T, self.curve])

    def shapley(self) -> Tensor:
        """Its Shapley values, but for the players' equal shares in the total, (outputs, n)."""
        return self.effects - self.effects.mean(1, keepdim=True)


def terms(masks: Tensor) -> Tensor:
    """What effects and curve are multiplied by, `(b, n + knots)`."""
    x = masks.double()
    return torch.cat([x, hat_functions(x.mean(1))], 1)


@dataclass(frozen=True)
class AdditiveFit:
    """The additive game, and what is left over of each sample (m, outputs) by a fit that has seen neither it
    nor its complement."""

    game: Additive
    left: Tensor
    odd: Tensor  # (outputs,): those fitted to the odd part of the game

    def or_odd(self, other: AdditiveFit, pairing: Pairing, exact: Tensor) -> AdditiveFit:
        """For each output the other fit, unless that leaves more over than `exact` (outputs,)."""
        better = leaves_less(other.left, self.left, pairing, share=ABOUT, exact=exact)
        effects = torch.where(better[:, None], other.game.effects, self.game.effects)
        curve = torch.where(better, other.game.curve, self.game.curve)
        left = torch.where(better, other.left, self.left)
        return AdditiveFit(Additive(effects, curve), left, torch.where(better, other.odd, self.odd))


def fit_additive(game: Game, masks: Tensor, values: Tensor, pairing: Pairing) -> AdditiveFit | None:
    """Least squares on samples, or on the odd part of the game where pairs show that it is simpler.

    None where samples are too few.

    Args:
        game: whose values of all players and of none are known, too.
        masks: (m, n).
        values: (m, outputs), float64.
        pairing: of the samples.
    """
    n = game.n_players
    if len(masks) < n + KNOTS + SPARE:
        return None
    ends = masks.new_zeros(2, n)
    ends[1] = True
    ends, edges = terms(ends), torch.stack([game.empty, game.grand]).double()
    rows = terms(masks)
    found = _plain(torch.cat([rows, ends]), torch.cat([values, edges]), pairing)
    if len(pairing.pairs) < max(n + SPARE, MOSTLY * len(masks) / 2):
        return found
    first, second = pairing.pairs, pairing.partner[pairing.pairs]
    rows = torch.cat([rows[first] - rows[second], ends[1:] - ends[:1]]) / 2
    targets = torch.cat([values[first] - values[second], edges[1:] - edges[:1]]) / 2
    return found.or_odd(_odd(rows, targets, pairing), pairing, EXACT * values.var(0))


def _plain(rows: Tensor, targets: Tensor, pairing: Pairing) -> AdditiveFit:
    fitted, residuals, covariance = _least_squares(rows, targets)
    m = len(pairing.partner)
    own = 1 - (covariance * rows).sum(1)[:m]

    def beside(partner: Tensor) -> Tensor:
        return -(covariance[:m] * rows[partner]).sum(1)

    left = pairing.without_each(residuals[:m], own.clamp_min(RIDGE), beside)
    return AdditiveFit(fitted, left, torch.zeros(left.shape[1], dtype=torch.bool, device=left.device))


def _odd(rows: Tensor, targets: Tensor, pairing: Pairing) -> AdditiveFit:
    """Samples without a complement, which are few, tell nothing: the others count in their stead."""
    fitted, residuals, covariance = _least_squares(rows, targets)
    own = 1 - (covariance * rows).sum(1, keepdim=True)
    of_pairs = (residuals / own.clamp_min(RIDGE))[:-1]
    m, pairs = len(pairing.partner), len(of_pairs)
    left = of_pairs.new_zeros(m, targets.shape[1])
    left[pairing.pairs] = of_pairs * (m / (2 * pairs))
    left[pairing.partner[pairing.pairs]] = -left[pairing.pairs]
    return AdditiveFit(fitted, left, torch.ones(left.shape[1], dtype=torch.bool, device=left.device))


def _least_squares(rows: Tensor, targets: Tensor) -> tuple[Additive, Tensor, Tensor]:
    """Effects and curve, residuals, and each row times the inverse of the normal equations."""
    n, smooth = rows.shape[1] - KNOTS, roughness(rows.device)
    left = rows.T @ rows
    left[n:, n:] += smooth
    left.diagonal().add_(RIDGE * left.diagonal().mean())  # what all players share may also be in the curve
    inverse = torch.linalg.inv_ex(left).inverse  # `inv` waits for a GPU
    found = inverse @ (rows.T @ targets)
    return Additive(found[:n].T, found[n:]), targets - rows @ found, rows @ inverse


def leaves_less(
    left: Tensor, other: Tensor, pairing: Pairing, *, share: float = CLEARLY, exact: Tensor | float = 0.0
) -> Tensor:
    """For each output, whether what one prediction leaves over matters less than a share of what the other
    does, or is not worth counting, (outputs,)."""
    first, second = (pairing.folded(some).square().mean(0) for some in (left, other))
    return first < share * second + exact
