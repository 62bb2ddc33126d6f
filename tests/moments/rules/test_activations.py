import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from scipy import special
from torch.nn import functional as F

from protopfaith.moments import Gaussian
from tests.moments.reference import column, magnitudes, means, quadrature

# torch function, numpy function, kinks
RECTIFIERS = {
    "relu": (torch.relu, lambda y: np.maximum(y, 0), [0]),
    "relu6": (F.relu6, lambda y: np.clip(y, 0, 6), [0, 6]),
    "relu1": (lambda x: F.hardtanh(x, 0.0, 1.0), lambda y: np.clip(y, 0, 1), [0, 1]),
    "hardtanh": (F.hardtanh, lambda y: np.clip(y, -1, 1), [-1, 1]),
    "clamp_min": (lambda x: x.clamp(min=0.5), lambda y: np.maximum(y, 0.5), [0.5]),
    "clamp_max": (lambda x: torch.clamp(x, max=2.0), lambda y: np.minimum(y, 2.0), [2.0]),
    "clamp_min as a function": (lambda x: torch.clamp_min(x, 0.5), lambda y: np.maximum(y, 0.5), [0.5]),
    "clamp_max as a method": (lambda x: x.clamp_max(2.0), lambda y: np.minimum(y, 2.0), [2.0]),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), lambda y: np.where(y > 0, y, 0.1 * y), [0]),
    "hardsigmoid": (F.hardsigmoid, lambda y: np.clip(y / 6 + 0.5, 0, 1), [-3, 3]),
}
SMOOTH = {
    "hardswish": (F.hardswish, lambda y: y * np.clip(y + 3, 0, 6) / 6),
    "sigmoid": (torch.sigmoid, special.expit),
    "tanh": (torch.tanh, np.tanh),
    "gelu": (F.gelu, lambda y: y * special.ndtr(y)),
    "silu": (F.silu, lambda y: y * special.expit(y)),
}
FUNCTIONS = {name: entry[0] for name, entry in (RECTIFIERS | SMOOTH).items()}


@pytest.mark.parametrize("name", RECTIFIERS)
@settings(max_examples=150, deadline=None)
@given(mean=means(), variance=magnitudes())
@example(mean=-10.7, variance=1.24)
@example(mean=1000.0, variance=1e-6)
@example(mean=1e-6, variance=1000.0)
def test_rectifiers_equal_quadrature(name, mean, variance):
    function, g, kinks = RECTIFIERS[name]
    m, v = column(mean, variance)
    result = function(Gaussian(m, v))
    expected_mean, expected_variance = quadrature(g, float(m), float(v), kinks)
    scale = np.sqrt(variance) + abs(expected_mean)
    assert abs(float(result.mean) - expected_mean) <= 1e-6 * scale
    # Far out, a tail's logarithm is as large as the square of its distance, which float32 rounds.
    assert abs(float(result.variance) - expected_variance) <= 5e-4 * expected_variance + 1e-30


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=60, deadline=None)
@given(mean=means(), variance=magnitudes())
@example(mean=0.5, variance=1.0)
@example(mean=0.5, variance=float(np.float32(1.0001)))
def test_smooth_activations_equal_quadrature_as_documented(name, mean, variance):
    function, g = SMOOTH[name]
    m, v = column(mean, variance)
    result = function(Gaussian(m, v))
    expected_mean, expected_variance = quadrature(g, float(m), float(v))
    deviation = np.sqrt(variance)
    # What float32 makes of the function's own value comes on top.
    rounding = 2e-7 * (1 + abs(expected_mean))
    assert abs(float(result.mean) - expected_mean) <= 1e-5 * deviation + rounding
    assert abs(float(result.variance) - expected_variance) <= 1e-5 * variance + 4 * rounding * deviation


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=60, deadline=None)
@given(mean=means(), variance=magnitudes())
def test_values_and_gradients_are_finite_and_no_variance_is_negative(name, mean, variance):
    m, v = column(mean, variance, grad=True)
    result = FUNCTIONS[name](Gaussian(m, v))
    assert bool((result.variance >= 0).all())
    for output in (result.mean, result.variance):
        for gradient in torch.autograd.grad(output.sum(), (m, v), retain_graph=True):
            assert bool(torch.isfinite(gradient).all())
        assert bool(torch.isfinite(output).all())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_variance_it_is_the_function_itself(name):
    m = torch.tensor([-1e3, -2.0, -1e-6, 0.0, 1e-6, 0.3, 1.0, 1.7, 6.0, 1e3], requires_grad=True)
    v = torch.zeros_like(m, requires_grad=True)
    result = FUNCTIONS[name](Gaussian(m, v))
    assert torch.equal(result.variance, torch.zeros_like(m))
    assert torch.allclose(result.mean, FUNCTIONS[name](m), rtol=1e-6, atol=1e-6)
    for output in (result.mean, result.variance):
        (slope,) = torch.autograd.grad(output.sum(), v, retain_graph=True)
        assert torch.equal(slope, torch.zeros_like(v))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_are_those_of_the_formula(name):
    generator = torch.Generator().manual_seed(0)
    m = (3 * torch.randn(20, generator=generator, dtype=torch.float64)).requires_grad_()
    v = torch.rand(20, generator=generator, dtype=torch.float64).mul(3).add(0.01).requires_grad_()

    def moments(m, v):
        result = FUNCTIONS[name](Gaussian(m, v))
        return result.mean.clone(), result.variance

    assert torch.autograd.gradcheck(moments, (m, v), eps=1e-6, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gain_of_common_factors_is_the_covariance(name):
    """Cov(g(x), e) for x = m + F e + noise, by sampling."""
    generator = torch.Generator().manual_seed(1)
    m = torch.tensor([-1.0, 0.2, 0.9, 3.0], dtype=torch.float64)
    factor, own = 0.8, 0.5
    e = torch.randn(200_000, 1, generator=generator, dtype=torch.float64)
    x = m + factor * e + own * torch.randn(200_000, 4, generator=generator, dtype=torch.float64)
    result = FUNCTIONS[name](Gaussian(m, factor**2 + own**2, torch.full((1, 4), factor, dtype=torch.float64)))
    products = FUNCTIONS[name](x) * e
    error = 5 * products.std(0) / np.sqrt(len(e))
    assert bool(((products.mean(0) - result.factors[0]).abs() <= error).all())
    assert bool((result.own_variance >= 0).all())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x.clamp_min_(0.5), lambda x: x.clamp(min=0.5)),
        (lambda x: torch.clamp_min_(x, min=0.5), lambda x: x.clamp(min=0.5)),
        (lambda x: x.clamp_max_(max=0.5), lambda x: x.clamp(max=0.5)),
        (lambda x: torch.clamp_max_(x, 0.5), lambda x: x.clamp(max=0.5)),
    ],
)
def test_one_bound_in_place_is_clamp_with_one_bound(change, expected):
    x = Gaussian(torch.tensor([-1.0, 0.4, 2.0]), 0.7)
    wanted = expected(x)
    assert change(x) is x
    assert torch.equal(x.mean, wanted.mean)
    assert torch.equal(x.variance, wanted.variance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    m, v = torch.tensor([-1.0, 0.5]), torch.tensor([0.3, 2.0])
    wide = torch.relu(Gaussian(m, v))
    result = torch.relu(Gaussian(m.to(dtype), v.to(dtype)))
    assert result.dtype == dtype
    assert torch.allclose(result.mean.float(), wide.mean, rtol=1e-2)
