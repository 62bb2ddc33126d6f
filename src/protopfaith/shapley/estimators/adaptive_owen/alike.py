"""Where few players make coalitions that are alike: what samples tell of each other.

Leaving a sample out of a fit is not enough there. The mean over density, which is subtracted first, knows all
samples and passes some of that on (`Curve`); and a sample of a coalition that was drawn twice is predicted by
the other one (`missed_share`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.shapley.densities import ends, hat_functions

LOOSE = 1e-3  # of how smooth the mean over density is expected to be: hardly anything
MUTUAL = 0.999  # of what samples may tell of each other: equal coalitions tell all


@dataclass(frozen=True)
class Curve:
    """The function's mean over density, fitted together with a surrogate.

    It was subtracted before, as all samples but the own one know it. So what is to be predicted of others
    knows the own value a little, and a surrogate that can be a function of density passes that on: among 10
    to 15 players values came out 1 to 4% too large. Fitted once more beside the surrogate, whatever of
    it was subtracted before makes no difference.
    """

    hats: Tensor  # (m, knots)
    kept: Tensor  # (m,): what the mean over density with the own sample leaves of that without it

    @staticmethod
    def of(p: Tensor) -> Curve:
        hats = hat_functions(p.double())
        inverse = torch.linalg.inv_ex(hats.T @ hats + ends(p.device)[1]).inverse
        return Curve(hats, (1 - ((hats @ inverse) * hats).sum(1)).to(p))

    def first(self, most: int) -> Curve:
        return Curve(self.hats[:most], self.kept[:most])

    def beside(self, inverse_root: Tensor, targets: Tensor) -> Beside:
        """With the inverse root (k, m, m) of a kernel."""
        explained = inverse_root.double() @ self.hats
        root = torch.linalg.cholesky_ex(explained.mT @ explained + LOOSE * ends(self.hats.device)[1]).L
        explained = (
            inverse_root.double().mT @ torch.linalg.solve_triangular(root, explained.mT, upper=False).mT
        )
        curve = torch.linalg.solve_triangular(root.mT, explained.mT @ targets.double(), upper=True)
        return Beside(explained.to(targets), curve.to(targets))


@dataclass(frozen=True)
class Beside:
    explained: Tensor  # (k, m, knots), of the kernel's inverse, as a root of what is to be subtracted
    curve: Tensor  # (k, knots, outputs)


@dataclass(frozen=True)
class Inverse:
    """Of a kernel with its noise, (k, m, m), less what a curve over density explains."""

    root: Tensor
    explained: Tensor | None  # (k, m, knots)

    def times(self, right: Tensor) -> Tensor:
        found = self.root.mT @ (self.root @ right)
        return found if self.explained is None else found - self.explained @ (self.explained.mT @ right)

    def diagonal(self, partner: Tensor | None = None) -> Tensor:
        """(k, m), or where each row meets the column of its partner."""
        number = slice(None) if partner is None else partner
        found = (self.root * self.root[..., number]).sum(1)
        if self.explained is None:
            return found
        return found - (self.explained * self.explained[:, number]).sum(2)

    def whole(self) -> Tensor:
        found = self.root.mT @ self.root
        return found if self.explained is None else found - self.explained @ self.explained.mT


def missed_share(inverse: Tensor, left: Tensor, shared: Tensor, partner: Tensor) -> Tensor:
    """By how much the variance of the mean of what is left over is larger than its samples show, (outputs,).

    Each of two samples that tell of each other is predicted by the other. Without both, more is left over of
    sample k than without k alone: that is what sample j does to it, h_jk. The variance of a sum over samples
    that act on each other is the sum of their squares, which they show, and of h_jk h_kj, which they do not
    show: of a coalition of few players that is drawn twice nothing is left over either time.

    Args:
        inverse: of the kernel with its noise, (m, m).
        left: (m, outputs), of each sample without it: k and j left out both leave a 2 x 2 block to be solved.
        shared: (m, m), what j and k count by, multiplied.
        partner: (m,), the complement of each sample, which is left out with it in any case.
    """
    inverse, left, number = inverse.double(), left.double(), torch.arange(len(left), device=left.device)
    apart = shared.clone()
    apart[number, number] = apart[number, partner] = 0
    share = inverse / inverse.diagonal()[:, None]
    told = (share * share.T).clamp_max(MUTUAL)
    weight = apart * told / (1 - told).square()
    crossed = left * ((weight * (1 + told)) @ left) - 2 * (weight * share).sum(0)[:, None] * left.square()
    shown = left.square() * shared.diagonal()[:, None]
    return (1 + crossed.sum(0) / shown.sum(0).clamp_min(1e-300)).nan_to_num(1.0).clamp_min(1).float()
