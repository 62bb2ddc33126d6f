from pathlib import Path

import pytest
import torch

from protopfaith.shapley import Game, Players, estimate
from protopfaith.shapley.estimators.adaptive_owen import surrogate
from protopfaith.shapley.estimators.adaptive_owen.estimator import KEPT, ROUND


def test_many_samples_report_how_far_they_are():
    game = Game(lambda x: x.flatten(1)[:, :2].square(), torch.randn(1, 5, 6), Players.windows((5, 6), 1))
    reported = []
    budget = KEPT + 3 * ROUND
    estimate(game, "adaptive_owen", budget=budget, progress=lambda done, most: reported.append((done, most)))
    assert len(reported) >= 5
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1] == (budget, budget)


def test_each_stream_of_samples_is_drawn_by_what_the_others_show():
    """Where a sample's own value made its size more likely, it would count less, and values be too small."""
    n = 30
    weights = torch.linspace(0.5, 2, n, dtype=torch.float64)

    def few(images):  # matters in small coalitions alone
        count = images.flatten(1).double() @ weights
        return (-count / 3).exp()[:, None]

    game = Game(few, torch.ones(1, 5, 6), Players.windows((5, 6), 1))
    found = [estimate(game, "adaptive_owen", budget=512, seed=s, shrinkage=False).values for s in range(40)]
    truth = estimate(game, "owen", budget=1 << 16).values
    slopes = torch.stack([(one * truth).sum() / truth.square().sum() for one in found])
    assert abs(float(slopes.mean()) - 1) < 3 * float(slopes.std()) / 40**0.5 + 0.01


def test_slices_beyond_the_kept_samples_need_no_other_fit(monkeypatch):
    """And give what one go gives, whoever remembers the fit."""
    image = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(0))

    def game():
        return Game(lambda x: x.flatten(1).cumsum(1)[:, ::9].tanh(), image, Players.windows((6, 6), 1))

    fits, fit = [], surrogate.cross_fit

    def counted(masks, *args, **options):
        fits.append(len(masks))
        return fit(masks, *args, **options)

    monkeypatch.setattr(surrogate, "cross_fit", counted)
    whole = estimate(game(), budget=KEPT + 900)
    fits.clear()
    here, elsewhere = game(), None
    found = None
    for budget in (KEPT + 100, KEPT + 300, KEPT + 900):
        found = estimate(here, budget=budget, resume=found)
        elsewhere = estimate(game(), budget=budget, resume=elsewhere)  # a game that knows nothing
    assert fits == [KEPT] * 4
    for other in (found, elsewhere):
        assert torch.allclose(other.values, whole.values, rtol=1e-3, atol=1e-4)
        assert torch.allclose(other.standard_errors, whole.standard_errors, rtol=1e-2, atol=1e-4)


def test_other_samples_of_the_same_game_are_fitted_anew():
    image = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(0))
    game = Game(lambda x: x.flatten(1).cumsum(1)[:, ::9].tanh(), image, Players.windows((6, 6), 1))
    first = estimate(game, budget=600, seed=1)
    estimate(game, budget=600, seed=2)
    again = estimate(game, budget=600, resume=first)
    assert torch.equal(again.values, first.values)


def test_a_result_goes_on_beside_another_surrogate(monkeypatch):
    """As on another device, whose rounding may choose another one: sums are of what that one leaves over."""
    image = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(0)).double()
    game = Game(lambda x: x.flatten(1).cumsum(1)[:, ::9].tanh(), image, Players.windows((6, 6), 1))
    first = estimate(game, budget=6_000)
    monkeypatch.setattr(surrogate, "SETTINGS", ((0.0, 50.0),))
    second = estimate(game, budget=6_001, resume=first)
    assert not torch.allclose(second.state["known"], first.state["known"], atol=1e-3)
    means = [one.state["sum"] / one.state["count"] + one.state["known"] for one in (first, second)]
    assert torch.allclose(*means, atol=0.01)
    assert (first.values - second.values).abs().max() < 3 * first.standard_errors.max()


@pytest.mark.parametrize(("outputs", "operations", "waits"), [(40, 1680, 3), (5, 1950, 5)])
def test_an_estimate_asks_little_of_a_gpu(outputs, operations, waits, monkeypatch):
    """Starting an operation costs a GPU more than doing it, and a number that is read keeps it waiting."""
    monkeypatch.syspath_prepend(Path(__file__).parents[4] / "benchmarks")
    from launches import of_one_estimate

    found = of_one_estimate(outputs)
    assert 500 < found.operations.total() < operations
    assert 1 < found.waits.total() <= waits
