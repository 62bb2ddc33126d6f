import pytest
import torch

from protopfaith.shapley import Players
from protopfaith.shapley.estimators.adaptive_owen.posterior import posterior
from protopfaith.shapley.estimators.adaptive_owen.smoothing import Neighborhood, shrink

GRID = Neighborhood.of(Players.windows((14, 14), 1))


def maps(kind):
    """True values of 40 outputs."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(40, 196, generator=generator, dtype=torch.float64)
    if kind == "smooth":
        values = (GRID.broad @ values.T).T * 4
    if kind == "zeros":
        values = values * 3 * (torch.rand(40, 196, generator=generator) < 0.1)
    if kind == "peaks":
        values = 0.3 * (GRID.broad @ values.T).T
        values[:, ::40] += 8
    if kind == "equal":
        values = 2 + 0.1 * values
    return values


@pytest.mark.parametrize("kind", ["independent", "smooth", "zeros", "peaks", "equal"])
@pytest.mark.parametrize("error", [0.3, 1.0, 3.0])
def test_it_has_less_error_than_the_estimates_and_knows_how_much(kind, error):
    truth = maps(kind)
    noise = error**2 * (0.5 + torch.rand(40, 196, generator=torch.Generator().manual_seed(1)).double())
    estimates = (
        truth + noise.sqrt() * torch.randn(40, 196, generator=torch.Generator().manual_seed(2)).double()
    )
    found = posterior(estimates, noise, noise, GRID)
    assert (found.mean - truth).square().mean() < 1.02 * (estimates - truth).square().mean()
    deviation = (found.variance + found.allowance).sqrt()
    inside = (found.mean - truth).abs() < 1.96 * deviation
    assert float(inside.double().mean()) > 0.93
    largest = truth.abs().topk(5, dim=1).indices
    assert float(inside.gather(1, largest).double().mean()) > 0.75
    assert (deviation < 3 * noise.sqrt() + (estimates - found.mean).abs()).all()
    sure = found.wrong_sign < 0.05
    wrong = found.mean.sign() != truth.sign()
    assert float((sure & wrong).sum()) <= 0.1 * float(sure.sum()) + 5


def test_estimates_without_error_stay():
    truth = maps("independent")
    found = posterior(truth, torch.zeros_like(truth), torch.zeros_like(truth), GRID)
    assert torch.equal(found.mean, truth)
    assert not found.variance.any()
    assert not found.wrong_sign.any()


def test_scale_and_order_of_outputs_do_not_matter():
    truth = maps("smooth")
    estimates = truth + torch.randn(40, 196, generator=torch.Generator().manual_seed(2)).double()
    noise, factors = torch.ones_like(truth), torch.logspace(-3, 3, 40, dtype=torch.float64)[:, None]
    one = posterior(estimates, noise, noise, GRID)
    scaled = factors**2 * noise
    other = posterior(factors * estimates, scaled, scaled, GRID)
    assert torch.allclose(other.mean / factors, one.mean, atol=1e-3)
    assert torch.allclose(other.wrong_sign, one.wrong_sign, atol=1e-3)


def test_a_smooth_map_under_much_noise_is_estimated_as_smooth() -> None:
    """There guesses cannot be told apart for single players; a map without order is not smoothed."""
    torch.manual_seed(3)
    near, noise = (
        Neighborhood.of(Players.windows((14, 14), 1)),
        torch.full((8, 196), 4.0, dtype=torch.float64),
    )
    rows = torch.linspace(0, 3, 14, dtype=torch.float64).sin()
    smooth = (rows[:, None] * rows).flatten().expand(8, -1)
    lone = torch.zeros(8, 196, dtype=torch.float64)
    lone[:, 7::40] = 20.0
    for truth, closer in ((smooth, True), (lone, False)):
        estimates = truth + 2 * torch.randn_like(truth)
        found = posterior(estimates, noise, noise, near)
        mean, _ = shrink(estimates, noise, near)
        error, plain = ((one - truth).square().mean() for one in (found.mean, mean))
        assert torch.allclose(found.mean, mean) == closer
        assert error <= plain * (1 + 1e-9)


@pytest.mark.parametrize("size", [1.0, 1.5, 2.0])
def test_a_few_values_that_are_as_large_as_the_noise_are_not_ruled_out(size: float) -> None:
    truth = torch.zeros(40, 196, dtype=torch.float64)
    truth[:, 7::20] = size  # ten of 196
    noise = torch.ones_like(truth)
    estimates = truth + torch.randn(40, 196, generator=torch.Generator().manual_seed(2)).double()
    found = posterior(estimates, noise, noise, GRID)
    inside = (found.mean - truth).abs() < 1.96 * (found.variance + found.allowance).sqrt()
    assert float(inside[:, 7::20].double().mean()) > 0.85


def test_where_values_stand_out_the_bars_of_all_others_are_narrower() -> None:
    errors = torch.randn(40, 196, generator=torch.Generator().manual_seed(2)).double()
    noise, four = torch.ones_like(errors), torch.arange(196) % 60 == 7

    def left(size: float) -> float:
        truth = size * four.double().expand(40, -1)
        found = posterior(truth + errors, noise, noise, GRID)
        return float((found.variance + found.allowance)[:, ~four].mean())

    assert left(60.0) < 0.75 * left(0.0)


@pytest.mark.parametrize("usual", [0.6, -0.6, 3.0])
def test_what_most_players_have_is_not_taken_from_them_where_a_few_are_giants(usual: float) -> None:
    """Else the gap to the total, which is known, would be given to the giants."""
    truth = torch.full((30, 196), usual, dtype=torch.float64)
    truth[:, ::40] = 150.0
    noise = torch.ones_like(truth)
    generator = torch.Generator().manual_seed(5)
    estimates = truth + torch.randn(30, 196, generator=generator, dtype=torch.float64)
    missing = posterior(estimates, noise, noise, GRID).mean.sum(1) - truth.sum(1)
    ordinary = (truth == usual).sum(1) * usual
    assert float((missing / ordinary).square().mean().sqrt()) < 0.4  # zero takes more than 0.9


def test_outputs_know_nothing_of_each_other_so_many_are_judged_in_blocks(monkeypatch):
    truth = maps("peaks")
    noise = torch.ones_like(truth)
    whole = posterior(truth, noise, noise, GRID)
    monkeypatch.setattr("protopfaith.shapley.estimators.adaptive_owen.posterior.LARGEST_BLOCK", 10**5)
    parts = posterior(truth, noise, noise, GRID)
    for name in ("mean", "variance", "allowance", "wrong_sign"):
        assert torch.allclose(getattr(whole, name), getattr(parts, name))
