import math

import numpy as np
import pytest
import torch
from scipy import special

from protopfaith.moments.normal import FAR, cdf, deviations, root, safe_deviation, tails


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_tails_keep_their_digits_far_out(dtype, tolerance):
    x = torch.linspace(0, 12.5, 501, dtype=dtype)
    exact = x.double().numpy()
    density = np.exp(-(exact**2) / 2) / math.sqrt(2 * math.pi)
    mills = math.sqrt(math.pi / 2) * special.erfcx(exact / math.sqrt(2))  # Q / density
    expected = (
        density,
        density * mills,
        density * (1 - exact * mills),
        density * ((1 + exact**2) * mills - exact),
    )
    for found, wanted in zip(tails(x), expected, strict=True):
        assert np.abs(found.double().numpy() / wanted - 1).max() < tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tails_end_in_zero_not_in_nan(dtype):
    assert all(float(value) == 0 for value in tails(torch.tensor(FAR, dtype=dtype)))


def test_cdf_is_exact_relative_to_itself():
    x = torch.linspace(-12, 5, 200)
    assert np.abs(cdf(x).double().numpy() / special.ndtr(x.double().numpy()) - 1).max() < 2e-5


def test_deviations_are_bounded_even_without_variance():
    away = deviations(torch.tensor([-1e30, 0.0, 1.0]), safe_deviation(torch.zeros(3)))
    assert away.tolist() == [-FAR, 0.0, FAR]


def test_the_root_has_a_slope_of_zero_at_zero():
    variance = torch.tensor([0.0, 4.0], requires_grad=True)
    root(variance).sum().backward()
    assert variance.grad.tolist() == [0.0, 0.25]
