import math

import pytest
import torch
from scipy.stats import t

from protopfaith.shapley.noise import Noisy, student


def test_means_variances_and_doubts_are_those_of_the_samples():
    torch.manual_seed(0)
    residuals, weights = torch.randn(500, 2).double(), torch.randn(500, 3).double()
    found = Noisy.from_samples(residuals, weights)
    each = residuals[:, :, None] * weights[:, None]
    assert torch.allclose(found.values, each.mean(0))
    assert torch.allclose(found.variances, each.var(0) / 500, rtol=1e-6)
    squares = each.square()
    assert torch.allclose(found.doubts, squares.var(0, correction=0) / 500 / 499**2, rtol=1e-6)


@pytest.mark.parametrize("folds", [2, 4])
def test_without_a_fold_is_what_the_other_samples_say(folds):
    torch.manual_seed(0)
    residuals, weights = torch.randn(91, 2).double(), torch.randn(91, 3).double()
    found = Noisy.without_each(residuals, weights, folds)
    for k in range(folds):
        others = torch.arange(91) % folds != k
        alone = Noisy.from_samples(residuals[others], weights[others])
        for name in ("values", "variances", "doubts"):
            assert torch.allclose(getattr(found, name)[k], getattr(alone, name))


def test_two_estimates_are_weighted_by_their_variances():
    first = Noisy(torch.zeros(1, 2), torch.full((1, 2), 4.0), torch.zeros(1, 2))
    second = Noisy(torch.ones(1, 2), torch.full((1, 2), 1.0), torch.zeros(1, 2))
    both = first.combined(second)
    assert both.values.tolist() == [[pytest.approx(0.8)] * 2]
    assert both.variances.tolist() == [[pytest.approx(0.8)] * 2]


@pytest.mark.parametrize("degrees", [3, 5, 20, 1000])
def test_quantiles_are_student_s(degrees):
    assert float(student(torch.tensor(float(degrees)))) == pytest.approx(t.ppf(0.975, degrees), rel=0.02)


def test_variances_made_by_few_samples_are_doubted():
    torch.manual_seed(0)
    plain = Noisy.from_samples(torch.randn(400, 1).double(), torch.ones(400, 5).double())
    heavy = Noisy.from_samples(torch.randn(400, 1).double() ** 7, torch.ones(400, 5).double())
    assert float((plain.noise() / plain.variances).max()) < 1.1
    assert float((heavy.noise() / heavy.variances).min()) > 1.5


def test_intervals_of_heavy_tailed_samples_hold_more_often_when_raised() -> None:
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(40, 4000, generator=generator, dtype=torch.float64).mul(1.5).exp()
    found = Noisy.from_samples(samples, torch.ones(40, 1, dtype=torch.float64))
    off = (found.values - math.exp(1.5**2 / 2)).abs()
    plain, raised = (
        float((off < 1.96 * v.sqrt()).double().mean()) for v in (found.variances, found.moderated())
    )
    assert 0.97 > raised > plain + 0.02


def test_players_that_missed_the_samples_that_make_the_variance_are_drawn_to_all_others() -> None:
    weights = torch.full((50, 8), 0.01, dtype=torch.float64)
    weights[7, :4] = 1.0
    found = Noisy.from_samples(torch.ones(50, 1, dtype=torch.float64), weights)
    assert (found.moderated()[0, 4:] > found.variances.mean() / 2).all()
    even = Noisy.from_samples(torch.ones(50, 1, dtype=torch.float64), 0.01 * weights.sign() * _normal(50, 8))
    assert torch.allclose(even.moderated(), even.variances, rtol=0.4)


def test_intervals_of_normal_samples_are_hardly_raised() -> None:
    found = Noisy.from_samples(_normal(2000, 50), torch.ones(2000, 1, dtype=torch.float64))
    assert (found.moderated() < 1.02 * found.variances).all()


def test_no_error_stays_none() -> None:
    nothing = torch.zeros(1, 3, dtype=torch.float64)
    assert not Noisy(nothing, nothing, nothing).moderated().any()


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
