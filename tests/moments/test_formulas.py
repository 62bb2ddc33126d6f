"""Closed forms against their definitions: quadrature, sampling and autograd."""

import numpy as np
import pytest
import torch

from protopfaith.moments import Gaussian, formulas
from tests.moments.reference import assert_within_standard_errors, quadrature, sample

MEANS = torch.tensor([-4.0, -1.0, -0.1, 0.0, 0.3, 2.0, 7.0], dtype=torch.float64)
VARIANCES = torch.tensor([0.01, 0.5, 1.0, 3.0, 9.0, 0.2, 4.0], dtype=torch.float64)


@pytest.mark.parametrize("slope", [None, 0.0, 0.1, 0.7])
def test_rectifiers_equal_quadrature(slope):
    plain = slope is None
    found = formulas.relu(MEANS, VARIANCES) if plain else formulas.leaky_relu(MEANS, VARIANCES, slope)

    def g(y):
        return np.where(y > 0, y, (slope or 0.0) * y)

    for place, (mean, variance) in enumerate(zip(MEANS.tolist(), VARIANCES.tolist(), strict=True)):
        expected = quadrature(g, mean, variance, [0])
        assert [float(one[place]) for one in found] == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_the_larger_of_two_agrees_with_sampling():
    other = (MEANS.flip(0), VARIANCES.roll(2))
    mean, variance = formulas.maximum(MEANS, VARIANCES, *other)
    samples = torch.maximum(sample(MEANS, VARIANCES, 100_000), sample(*other, 100_000, seed=1))
    assert_within_standard_errors(Gaussian(mean, variance), samples)


PAIRS = {
    "relu": (formulas.relu, formulas.relu_slopes, (MEANS, VARIANCES)),
    "leaky_relu": (
        lambda m, v: formulas.leaky_relu(m, v, 0.1),
        lambda m, v: formulas.leaky_relu_slopes(m, v, 0.1),
        (MEANS, VARIANCES),
    ),
    "maximum": (
        formulas.maximum,
        formulas.maximum_slopes,
        (MEANS, VARIANCES, MEANS.flip(0) + 0.5, VARIANCES.roll(2)),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_slopes_are_differences_of_the_values(name):
    values, slopes, inputs = PAIRS[name]
    expected = []
    for output in (0, 1):
        for place in range(len(inputs)):
            up, down = ([x + h * (k == place) for k, x in enumerate(inputs)] for h in (1e-5, -1e-5))
            expected.append((values(*up)[output] - values(*down)[output]) / 2e-5)
    assert torch.allclose(torch.stack(slopes(*inputs)), torch.stack(expected), rtol=1e-3, atol=2e-5)
