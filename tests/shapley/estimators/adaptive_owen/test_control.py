"""What samples are predicted by, and that its values are known."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.shapley.densities import anchored_mean, remove_mean
from protopfaith.shapley.estimators.adaptive_owen.additive import fit_additive
from protopfaith.shapley.estimators.adaptive_owen.control import Predicted
from protopfaith.shapley.estimators.adaptive_owen.pairs import Pairing
from protopfaith.shapley.estimators.adaptive_owen.surrogate import CrossFit, cross_fit
from protopfaith.shapley.estimators.exact import coalitions_by_number, shapley_weights
from protopfaith.shapley.game import Game
from protopfaith.shapley.players import Players

N, M = 6, 200
EFFECTS = torch.arange(N, dtype=torch.float64) - 1


def game() -> Game:
    """Two outputs: effects that add up, and players who act together, strongly."""

    def function(images: Tensor) -> Tensor:
        x = images.flatten(1)
        together = (5 * x[:, 0] * x[:, 1] * x[:, 2] - 3 * x[:, 3] * x[:, 4]).sin()
        return torch.stack([x @ EFFECTS, together], 1)

    return Game(function, torch.ones(1, 1, N, dtype=torch.float64), Players.windows((1, N), 1))


def learned() -> tuple[Tensor, CrossFit, Predicted, Predicted]:
    """Masks; surrogates of them; what these predict; and that, or the additive game where it is better."""
    one = game()
    generator = torch.Generator().manual_seed(0)
    masks = torch.rand(M, N, generator=generator) < torch.linspace(0.1, 0.9, M)[:, None]
    values, mean = one(masks).double(), anchored_mean(one)
    residuals = remove_mean(mean, masks.double().mean(1), values)
    priors = [torch.ones(N, dtype=torch.float64), torch.arange(1.0, N + 1, dtype=torch.float64)]
    fit = cross_fit(masks, residuals, torch.arange(M) % 2, priors, correlation=None)
    pairing = Pairing.none(M, masks.device)
    additive = fit_additive(one, masks, values, pairing)
    assert additive is not None
    first = Predicted.by(fit, mean)
    return masks, fit, first, first.or_additive(additive, pairing)


def test_a_control_s_values_are_those_of_all_its_predictions() -> None:
    """But for the players' equal shares."""
    coalitions = coalitions_by_number(torch.arange(2**N), N)
    inner = (coalitions.sum(1) > 0) & (coalitions.sum(1) < N)  # the ends are known: they make equal shares
    for found in learned()[2:]:
        values = found.control(coalitions)
        for output, known in enumerate(found.control.known):
            expected = (values[:, output] * inner) @ shapley_weights(coalitions)
            torch.testing.assert_close(known, expected - expected.mean(), rtol=0, atol=1e-5)


def test_values_are_the_mean_of_those_of_all_folds_and_the_control_s_those_of_one() -> None:
    _, fit, first, _ = learned()
    each = [model.shapley() for model in fit.models]
    assert not torch.allclose(*each)
    assert torch.allclose(first.known, (each[0] + each[1]) / 2)
    assert torch.equal(first.control.known, each[0])


def test_the_additive_game_predicts_what_adds_up_alone() -> None:
    masks, _, first, both = learned()
    assert both.control.simple is not None
    assert both.control.simple.tolist() == [True, False]
    truth = EFFECTS - EFFECTS.mean()
    torch.testing.assert_close(both.known[0], truth, rtol=0, atol=1e-6)
    torch.testing.assert_close(both.control.known[0], truth, rtol=0, atol=1e-6)
    assert both.left[:, 0].abs().max() < 1e-6 < first.left[:, 0].abs().max()
    torch.testing.assert_close(both.control(masks)[:, 0], masks.double() @ EFFECTS, rtol=0, atol=1e-6)
    for one, other in ((both.left.T, first.left.T), (both.known, first.known)):
        assert torch.equal(one[1], other[1])
    assert torch.equal(both.control(masks)[:, 1], first.control(masks)[:, 1])
