"""What predicts samples, so that only what it leaves over is averaged: a control variate of known values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from protopfaith.shapley.densities import hat_functions
from protopfaith.shapley.estimators.adaptive_owen.additive import Additive, AdditiveFit, leaves_less
from protopfaith.shapley.estimators.adaptive_owen.pairs import Pairing
from protopfaith.shapley.estimators.adaptive_owen.surrogate import CrossFit, Surrogate


@dataclass(frozen=True, eq=False)
class Control:
    """Predicts a sample by the mean over density and a surrogate, or by the additive game."""

    mean: dict[str, Tensor]  # normal equations of the function's mean over density
    surrogate: Surrogate
    known: Tensor  # (outputs, n): its values, but for the players' equal shares in the total
    additive: Additive | None = None
    simple: Tensor | None = None  # (outputs,): those that the additive game predicts

    def __call__(self, masks: Tensor) -> Tensor:
        """Predictions `(b, outputs)` for masks `(b, n)`."""
        curve = torch.linalg.solve_ex(self.mean["left"], self.mean["right"]).result
        predicted = hat_functions(masks.double().mean(1)) @ curve + self.surrogate(masks)
        if self.additive is None or self.simple is None:
            return predicted
        return torch.where(self.simple, self.additive(masks), predicted)


@dataclass(frozen=True, eq=False)
class Predicted:
    """The samples that were learned from, each predicted by a fit that has not seen it."""

    left: Tensor  # (m, outputs): what is left over of them
    known: Tensor  # (outputs, n): the values of what predicted them, as those of a control
    control: Control  # for later samples
    mutual: Tensor  # (outputs,): by how much the variance of what is left over is larger than it seems
    odd: Tensor | None = None  # (outputs,): those whose odd part alone is predicted, from pairs

    @staticmethod
    def by(fit: CrossFit, mean: dict[str, Tensor]) -> Predicted:
        """By surrogates, after the mean over density was removed."""
        known = [model.shapley() for model in fit.models]
        control = Control(mean, fit.models[0], known[0])
        return Predicted(fit.left, torch.stack(known).mean(0), control, fit.mutual.double())

    def or_additive(self, fit: AdditiveFit, pairing: Pairing) -> Predicted:
        """By the additive game those outputs of which it leaves clearly less over."""
        simple = leaves_less(fit.left, self.left, pairing)
        known, own = fit.game.shapley(), self.control.known
        control = replace(
            self.control, known=torch.where(simple[:, None], known, own), additive=fit.game, simple=simple
        )
        return Predicted(
            torch.where(simple, fit.left, self.left),
            torch.where(simple[:, None], known, self.known),
            control,
            torch.where(simple, 1.0, self.mutual),
            simple & fit.odd,
        )
