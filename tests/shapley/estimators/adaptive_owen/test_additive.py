"""Games whose players do not act together are solved, not sampled."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from protopfaith.shapley import Game, Players, estimate
from protopfaith.shapley.estimators.adaptive_owen.additive import fit_additive
from protopfaith.shapley.estimators.adaptive_owen.pairs import SPARE, Pairing

EFFECTS = torch.randn(2, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def game(together: float = 0.0) -> Game:
    """Effects add up, from a value that is not zero; `together` is how much all effects grow where the first
    two players are both there."""

    def function(images: Tensor) -> Tensor:
        x = images.flatten(1)
        return 3 + (1 + together * x[:, :1] * x[:, 1:2]) * (x @ EFFECTS.T)

    return Game(function, torch.ones(1, 6, 10, dtype=torch.float64), Players.windows((6, 10), 1))


def truth(together: float) -> Tensor:
    """Three players share what takes three, two what takes two."""
    others = EFFECTS[:, 2:].sum(1) / 3 + EFFECTS[:, :2].sum(1) / 2
    found = EFFECTS.clone()
    found[:, 2:] += together * EFFECTS[:, 2:] / 3
    found[:, :2] += together * others[:, None]
    return found


def samples_of(one: Game, count: int) -> tuple[Tensor, Tensor]:
    keys = torch.rand(count, 60, generator=torch.Generator().manual_seed(1))
    masks = keys < torch.linspace(0.1, 0.9, count)[:, None]
    return masks, one(masks).double()


@pytest.mark.parametrize("budget", [200, 512, 2_600])
def test_effects_that_add_up_are_found_exactly(budget: int) -> None:
    found = estimate(game(), budget=budget)
    assert torch.allclose(found.values.double(), EFFECTS, atol=1e-6)
    assert found.standard_errors.max() < 1e-6
    assert found.decided().all()
    sampled = estimate(game(), budget=budget, surrogate=False)
    assert not torch.allclose(sampled.values.double(), EFFECTS, atol=0.01)


def test_a_precise_result_needs_little_more_samples_than_players() -> None:
    found = estimate(game(), budget=50_000, precision=0.001)
    assert found.reached
    assert found.evaluations <= 600


@pytest.mark.parametrize("together", [0.2, 1.0])
def test_players_who_act_together_are_still_sampled(together: float) -> None:
    found = estimate(game(together), budget=2_048)
    far = (found.values - truth(together)).abs() / found.standard_errors
    assert (far < 1.96).double().mean() >= 0.9
    further = estimate(game(together), budget=2_600, resume=estimate(game(together), budget=2_200))
    whole = estimate(game(together), budget=2_600)
    assert ((further.values - whole.values).abs() < 1e-3 * whole.standard_errors).all()  # sums are rounded


def test_what_is_left_over_is_that_of_a_fit_without_the_sample() -> None:
    one = game(1.0)
    masks, values = samples_of(one, 120)
    fitted = fit_additive(one, masks, values, Pairing.none(120, masks.device))
    assert fitted is not None
    for k in (0, 57, 119):
        others = torch.arange(120) != k
        without = fit_additive(one, masks[others], values[others], Pairing.none(119, masks.device))
        assert without is not None
        left_over = values[k] - without.game(masks[k : k + 1])[0]
        assert torch.allclose(fitted.left[k], left_over, atol=1e-6)


def test_too_few_samples_tell_nothing() -> None:
    masks, values = samples_of(game(), 60 + SPARE)
    assert fit_additive(game(), masks, values, Pairing.none(len(masks), masks.device)) is None
