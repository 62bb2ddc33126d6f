import numpy as np
import pytest
import torch

from protopfaith.moments.pieces import hardswish
from tests.moments.reference import quadrature


@pytest.mark.parametrize("mean", [-50.0, -3.0, -2.9, 0.0, 1.5, 3.0, 3.1, 200.0])
@pytest.mark.parametrize("variance", [1e-8, 1e-2, 1.0, 30.0, 1e4])
def test_hardswish_equals_quadrature_in_float64(mean, variance):
    found = hardswish(
        torch.tensor([mean], dtype=torch.float64), torch.tensor([variance], dtype=torch.float64)
    )
    expected = quadrature(lambda y: y * np.clip(y + 3, 0, 6) / 6, mean, variance, [-3, 3])
    assert float(found[0]) == pytest.approx(expected[0], rel=1e-9, abs=1e-9)
    assert float(found[1]) == pytest.approx(expected[1], rel=1e-7, abs=1e-10 * variance)


def test_at_a_kink_without_variance_slopes_are_finite():
    m = torch.tensor([-3.0, 3.0], requires_grad=True)
    v = torch.zeros(2, requires_grad=True)
    mean, variance = hardswish(m, v)
    assert torch.equal(variance, torch.zeros(2))
    gradients = torch.autograd.grad(mean.sum() + variance.sum(), (m, v))
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
