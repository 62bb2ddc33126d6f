import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from tests.moments.reference import (
    assert_within_standard_errors,
    column,
    magnitudes,
    means,
    quadrature,
    random_gaussian,
    sample,
)


@settings(max_examples=100, deadline=None)
@given(m1=means(), v1=magnitudes(), m2=means(), v2=magnitudes())
@example(m1=1e3, v1=1e-6, m2=-1e3, v2=1e-6)
@example(m1=0.5, v1=1e-6, m2=0.5, v2=1e-6)
def test_the_larger_of_two_equals_quadrature(m1, v1, m2, v2):
    """max(X, Y) = Y + max(X - Y, 0): quadrature over X - Y, given which Y is Gaussian."""
    tensors = column(m1, v1, m2, v2, grad=True)
    result = torch.maximum(Gaussian(*tensors[:2]), Gaussian(*tensors[2:]))
    m1, v1, m2, v2 = (float(t.detach()) for t in tensors)
    t, s2 = m1 - m2, v1 + v2
    # Y = m2 - r (D - t) + independent, D = X - Y, r = v2 / s2
    ratio = v2 / s2
    mean, variance = quadrature(lambda d: np.maximum(d, 0) - ratio * (d - t), t, s2, [0])
    scale = np.sqrt(s2) + abs(m2 + mean)
    assert abs(float(result.mean.detach()) - (m2 + mean)) <= 1e-6 * scale
    assert abs(float(result.variance.detach()) - (variance + v1 * v2 / s2)) <= 5e-4 * (
        variance + v1 * v2 / s2
    )
    for output in (result.mean, result.variance):
        gradients = torch.autograd.grad(output.sum(), tensors, retain_graph=True)
        assert all(bool(torch.isfinite(g).all()) for g in gradients)


def test_slopes_are_those_of_the_formula():
    generator = torch.Generator().manual_seed(0)
    m1, m2 = torch.randn(2, 10, generator=generator, dtype=torch.float64)
    v1, v2 = torch.rand(2, 10, generator=generator, dtype=torch.float64) + 0.01
    inputs = [t.clone().requires_grad_() for t in (m1, v1, m2, v2)]

    def moments(m1, v1, m2, v2):
        result = torch.maximum(Gaussian(m1, v1), Gaussian(m2, v2))
        return result.mean.clone(), result.variance

    assert torch.autograd.gradcheck(moments, inputs)


@pytest.mark.parametrize("function", [torch.maximum, torch.minimum])
def test_of_two_agrees_with_sampling(function):
    x, y = random_gaussian(40, low=-2, high=1), random_gaussian(40, seed=1, low=-2, high=1)
    samples = function(sample(*x.moments, 100_000), sample(*y.moments, 100_000, seed=1))
    assert_within_standard_errors(function(x, y), samples)


def test_against_a_constant_it_is_a_rectifier():
    x = random_gaussian(50)
    assert torch.allclose(torch.maximum(x, torch.zeros(50)).mean, torch.relu(x).mean)
    assert torch.allclose(torch.maximum(x, torch.zeros(50)).variance, torch.relu(x).variance)


def test_common_factors_correlate_the_two():
    generator = torch.Generator().manual_seed(0)
    kind = {"generator": generator, "dtype": torch.float64}
    factors, own = torch.randn(2, 3, 6, **kind), torch.rand(2, 6, **kind) * 0.2
    m = torch.randn(2, 6, **kind)
    e = torch.randn(100_000, 3, 1, **kind)
    both = [Gaussian(m[i], own[i] + factors[i].square().sum(0), factors[i]) for i in range(2)]
    samples = [
        m[i] + (e * factors[i]).sum(1) + own[i].sqrt() * torch.randn(100_000, 6, **kind) for i in range(2)
    ]
    result = torch.maximum(*both)
    largest = torch.maximum(*samples)
    assert_within_standard_errors(result, largest)
    products = largest[:, None] * e
    error = 5 * products.std(0) / np.sqrt(len(e))
    assert bool(((products.mean(0) - result.factors).abs() <= error).all())


def _with_factors(*shape, seed=0, count=2):
    generator = torch.Generator().manual_seed(seed)
    mean, own = torch.randn(shape, generator=generator), torch.rand(shape, generator=generator)
    factors = torch.randn(count, *shape, generator=generator)
    return Gaussian(mean, own + factors.square().sum(0), factors)


def test_a_bound_keeps_common_factors():
    """max(x, 0) is relu, and min(x, 0) is x - relu: whatever says so, also with common factors."""
    x = _with_factors(2, 3, 4)
    up, down = torch.relu(x), -torch.relu(-x)
    forms = [
        x.clamp(min=0),
        torch.maximum(x, torch.zeros(4)),
        torch.fmax(torch.zeros(3, 1), x),
    ]
    for result, expected in [*((form, up) for form in forms), (x.clamp(max=0), down)]:
        assert torch.allclose(result.mean, expected.mean, atol=1e-6)
        assert torch.allclose(result.variance, expected.variance, atol=1e-5)
        assert torch.allclose(result.factors, expected.factors, atol=1e-5)


def test_common_factors_broadcast_like_their_variables():
    x, few, plain = _with_factors(2, 3, 4), _with_factors(4, seed=1), random_gaussian(3, 1)
    for other in (few, plain):
        wide = Gaussian(
            other.moments[0].expand(2, 3, 4).clone(),
            other.variance.expand(2, 3, 4).clone(),
            torch.zeros(2, 2, 3, 4)
            if other.factors is None
            else few.factors[:, None, None].expand(2, 2, 3, 4),
        )
        for function in (torch.maximum, torch.minimum, torch.add, torch.sub, torch.mul):
            for result, expected in (
                (function(x, other), function(x, wide)),
                (function(other, x), function(wide, x)),
            ):
                assert torch.allclose(result.mean, expected.mean)
                assert torch.allclose(result.variance, expected.variance)
                assert torch.allclose(result.factors, expected.factors)


def _tree(values):
    """Halves against halves, one pair at a time."""
    while len(values) > 1:
        half = len(values) // 2
        pairs = [torch.maximum(values[i], values[half + i]) for i in range(half)]
        values = pairs + values[2 * half :]
    return values[0]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_over_a_dimension_it_is_a_balanced_tree(count):
    x = random_gaussian(4, count, low=-1, high=1)
    slow = _tree([x[:, i] for i in range(count)])
    for result in (x.amax(1), torch.amax(x, -1, keepdim=True)[:, 0], -(-x).amin(1), x[None].amax((0, 2))):
        assert torch.allclose(result.mean, slow.mean)
        assert torch.allclose(result.variance, slow.variance)


def test_the_tree_stays_close_to_sampling():
    """Maxima are not Gaussian, so beyond pairs the rule is an approximation: to a tenth of a deviation."""
    x = Gaussian(torch.randn(20, 49, generator=torch.Generator().manual_seed(0)), 1.0)
    truth = sample(*x.moments, 20_000).amax(-1)
    assert float((x.amax(-1).mean - truth.mean(0)).abs().mean()) < 0.1


POOLS = [
    dict(zip(("kernel_size", "stride", "padding", "dilation", "ceil_mode"), values, strict=True))
    for values in itertools.product([2, 3], [None, 1, 2], [0, 1], [1, 2], [False, True])
]


@pytest.mark.parametrize("options", POOLS)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_pooling_without_variance_is_pooling(dimensions, options):
    if dimensions == 3 and options["dilation"] == 2 and options["kernel_size"] == 3:
        pytest.skip("as in two dimensions")
    pool = getattr(F, f"max_pool{dimensions}d")
    x = torch.randn(2, 2, *(7, 6, 5)[:dimensions], generator=torch.Generator().manual_seed(0))
    result = pool(Gaussian(x), **options)
    assert torch.equal(result.mean, pool(x, **options))
    assert bool((result.variance == 0).all())


def test_pooling_takes_every_window():
    x = random_gaussian(1, 1, 5, 6, low=-1, high=1)
    result = F.max_pool2d(x, (2, 3), stride=(2, 1), padding=(1, 0))
    for row, column_ in itertools.product(range(3), range(4)):
        rows = [r for r in (2 * row - 1, 2 * row) if 0 <= r < 5]
        strips = [_tree_of_three([x[:, :, r, column_ + k] for k in range(3)]) for r in rows]
        slow = strips[0] if len(strips) == 1 else torch.maximum(*strips)
        assert torch.allclose(result.mean[:, :, row, column_], slow.mean, rtol=1e-5)
        assert torch.allclose(result.variance[:, :, row, column_], slow.variance, rtol=1e-4)


def _tree_of_three(values):
    return torch.maximum(torch.maximum(values[0], values[1]), values[2])


def test_padding_never_wins_and_never_hurts():
    mean = torch.full((1, 1, 4, 4), -1e3, requires_grad=True)
    variance = torch.full((1, 1, 4, 4), 1e-6, requires_grad=True)
    result = F.max_pool2d(Gaussian(mean, variance), 3, 2, 1)
    assert bool((result.mean < -999).all())
    for output in (result.mean, result.variance):
        for gradient in torch.autograd.grad(output.sum(), (mean, variance), retain_graph=True):
            assert bool(torch.isfinite(gradient).all())


def test_indices_of_random_variables_do_not_exist():
    x = random_gaussian(1, 1, 4, 4)
    with pytest.raises(ProtoPFaithError, match="max_pool2d_with_indices"):
        F.max_pool2d(x, 2, return_indices=True)


def test_global_max_pooling():
    x = random_gaussian(2, 3, 4, 4, low=-1, high=1)
    assert torch.allclose(F.adaptive_max_pool2d(x, 1).mean[..., 0, 0], x.amax((2, 3)).mean)
    with pytest.raises(ProtoPFaithError, match="output size 1"):
        F.adaptive_max_pool2d(x, 2)


def test_gradients_with_common_factors_are_finite_even_without_variance():
    mean = torch.zeros(1, 1, 4, 4, requires_grad=True)
    variance = torch.zeros(1, 1, 4, 4, requires_grad=True)
    factors = torch.zeros(2, 1, 1, 4, 4, requires_grad=True)
    x = Gaussian(mean, variance, factors)
    for result in (
        F.max_pool2d(x, 3, 2, 1),
        torch.relu(x),
        F.hardtanh(x, 0.0, 1.0),
        x.amin((2, 3)),
        torch.sigmoid(x),
    ):
        total = result.mean.sum() + result.variance.sum() + result.factors.sum()
        gradients = torch.autograd.grad(total, (mean, variance, factors), retain_graph=True)
        assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
