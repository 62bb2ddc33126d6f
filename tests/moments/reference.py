"""The slow, obvious versions: quadrature and sampling."""

import numpy as np
import torch
from hypothesis import strategies as st

from protopfaith.moments import Gaussian

_X, _W = np.polynomial.legendre.leggauss(40)


def quadrature(g, mean, variance, kinks=()):
    """Mean and variance of g(Y) in float64: Gauss-Legendre on pieces of the line, cut at the kinks of g."""
    deviation = np.sqrt(np.float64(variance))
    mean = np.float64(mean)
    cuts = [np.linspace(-38, 38, 153), (np.asarray(kinks, dtype=np.float64) - mean) / deviation]
    around = (np.linspace(-30, 30, 121) - mean) / deviation  # where smooth activations bend
    cuts = np.unique(np.clip(np.concatenate([*cuts, around]), -38, 38))
    low, high = cuts[:-1, None], cuts[1:, None]
    z = (low + high) / 2 + (high - low) / 2 * _X
    weights = (high - low) / 2 * _W * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    change = g(mean + deviation * z) - g(mean)
    average = (weights * change).sum()
    return g(mean) + average, (weights * (change - average) ** 2).sum()


def magnitudes():
    """1e-6 to 1e3, as float32 holds them."""
    return st.floats(-6, 3).map(lambda power: float(np.float32(10.0**power)))


def means():
    """Zero, and +-1e-6 to +-1e3."""
    signed = st.tuples(st.sampled_from([-1.0, 1.0]), magnitudes()).map(lambda pair: pair[0] * pair[1])
    return st.one_of(st.just(0.0), signed)


def column(*values, grad=False):
    return [torch.tensor(value, dtype=torch.float32).reshape(-1).requires_grad_(grad) for value in values]


def sample(mean, variance, count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, *mean.shape, generator=generator, dtype=torch.float64)
    return mean.double() + variance.double().sqrt() * noise


def assert_within_standard_errors(result: Gaussian, samples: torch.Tensor, errors: float = 5.0):
    """Means and variances of samples (N, *shape) agree with a result (*shape) as far as sampling can tell."""
    samples = samples.double()
    count = len(samples)
    mean, variance = samples.mean(0), samples.var(0)
    fourth = (samples - mean).pow(4).mean(0)
    # The last terms: float32 itself.
    mean_error = errors * (variance / count).sqrt() + 1e-5 * mean.abs() + 1e-6 * mean.abs().max()
    variance_error = (
        errors * ((fourth - variance.square()).clamp_min(0) / count).sqrt() + 1e-4 * variance + 1e-12
    )
    assert result.mean.shape == mean.shape
    assert bool(((result.mean.double() - mean).abs() <= mean_error).all())
    assert bool(((result.variance.double() - variance).abs() <= variance_error).all())
    assert bool((result.variance >= 0).all())


def random_gaussian(*shape, seed=0, low=-6, high=3):
    """Means and variances of every size from 10^low to 10^high."""
    generator = torch.Generator().manual_seed(seed)
    power = torch.rand(2, *shape, generator=generator) * (high - low) + low
    sign = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    return Gaussian(sign * 10 ** power[0], 10 ** power[1])
