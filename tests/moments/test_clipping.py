import numpy as np
import pytest
import torch

from protopfaith.moments.clipping import clip, clip_slopes
from tests.moments.reference import quadrature

BOUNDS = [(0.0, 1.0), (-1.0, 1.0), (0.0, 6.0), (2.0, 2.5)]
MEANS = torch.tensor([-3.0, -0.2, 0.0, 0.4, 1.1, 5.0, 8.0], dtype=torch.float64)
VARIANCES = torch.tensor([0.5, 0.01, 1.0, 100.0, 0.3, 9.0, 2.0], dtype=torch.float64)


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_moments_equal_quadrature(low, high):
    """With bounds far apart and close together, and means inside and outside."""
    found = clip(MEANS, VARIANCES, low, high)
    for place, (mean, variance) in enumerate(zip(MEANS.tolist(), VARIANCES.tolist(), strict=True)):
        expected = quadrature(lambda y: np.clip(y, low, high), mean, variance, [low, high])
        assert [float(one[place]) for one in found] == pytest.approx(expected, rel=5e-4, abs=1e-12)


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_what_is_certain_is_clipped_exactly(low, high):
    mean, variance = clip(MEANS, torch.zeros_like(MEANS), low, high)
    assert torch.equal(mean, MEANS.clamp(low, high))
    assert torch.equal(variance, torch.zeros_like(MEANS))


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_slopes_are_differences_of_the_moments(low, high):
    h = 1e-5
    expected = []
    for output in (0, 1):
        for dm, dv in ((h, 0.0), (0.0, h)):
            up, down = (clip(MEANS + s * dm, VARIANCES + s * dv, low, high)[output] for s in (1, -1))
            expected.append((up - down) / (2 * h))
    found = clip_slopes(MEANS, VARIANCES, low, high)
    assert torch.allclose(torch.stack(found), torch.stack(expected), rtol=1e-3, atol=2e-5)
