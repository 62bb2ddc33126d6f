import numpy as np
import pytest
import torch
from scipy import special

from protopfaith.moments.smooth import Asymptote, relu_moments, smooth, step, step_moments
from tests.moments.reference import quadrature

MEANS = (-6.0, -1.0, 0.0, 0.7, 4.0)
STEP = Asymptote(step, step_moments, reach=20.0)
RELU = Asymptote(torch.relu, relu_moments, reach=20.0)
FUNCTIONS = {
    "sigmoid": (torch.sigmoid, STEP, special.expit),
    "softplus": (torch.nn.functional.softplus, RELU, lambda y: np.logaddexp(0, y)),  # none of the rules
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("variance", [0.01, 1.0, 1.0001, 30.0])
def test_moments_equal_quadrature_on_both_sides_of_variance_one(name, variance):
    g, asymptote, plain = FUNCTIONS[name]
    mean = torch.tensor(MEANS, dtype=torch.float64)
    found = smooth(g, asymptote, mean, torch.full_like(mean, variance))
    expected = np.array([quadrature(plain, one, variance) for one in MEANS]).T
    assert np.allclose(found[0], expected[0], rtol=0, atol=1e-5 * np.sqrt(variance))
    assert np.allclose(found[1], expected[1], rtol=0, atol=1e-5 * variance)


@pytest.mark.parametrize("variance", [1.0, 4.0, 30.0])
def test_asymptotes_have_the_moments_of_their_functions(variance):
    mean = torch.tensor(MEANS, dtype=torch.float64)
    for asymptote, plain in ((STEP, lambda y: (y > 0) * 1.0), (RELU, lambda y: np.maximum(y, 0))):
        found = asymptote.moments(mean, torch.full_like(mean, variance))
        expected = np.array([quadrature(plain, one, variance, [0]) for one in MEANS]).T
        assert np.allclose(torch.stack(found), expected, rtol=1e-4, atol=1e-6)


def test_half_precision_stays_and_is_computed_in_single():
    mean = torch.tensor(MEANS)
    exact = smooth(torch.sigmoid, STEP, mean, torch.ones_like(mean))
    half = smooth(torch.sigmoid, STEP, mean.half(), torch.ones_like(mean).half())
    for one, other in zip(half, exact, strict=True):
        assert one.dtype == torch.float16
        assert torch.allclose(one.float(), other, rtol=1e-3, atol=1e-6)
