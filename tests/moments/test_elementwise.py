import pytest
import torch
from torch import nn

from protopfaith.moments import Gaussian, fused
from tests.moments.reference import random_gaussian

LAYOUTS = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(2, 3),
    "with gaps": lambda x: x[:, :, ::2, 1:],
    "channels last with gaps": lambda x: x.contiguous(memory_format=torch.channels_last)[:, :, ::2, 1:],
    "expanded": lambda x: x[:1].expand(2, -1, -1, -1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_formulas_give_the_same_in_every_memory_layout(layout):
    """Only the backend that writes the kernels is left out, which takes long."""
    x = random_gaussian(2, 3, 4, 5, low=-2, high=2)
    x = Gaussian(LAYOUTS[layout](x.moments[0]), LAYOUTS[layout](x.variance.contiguous()))
    net = nn.Sequential(nn.ReLU(), nn.LeakyReLU(0.2), nn.Hardtanh(0.0, 1.0), nn.MaxPool2d(2, 1))
    plain = net(x)
    with fused(backend="eager"):
        result = net(x)
    assert torch.allclose(result.mean, plain.mean, atol=1e-6)
    assert torch.allclose(result.variance, plain.variance, atol=1e-6)


def test_channels_stay_last():
    x = random_gaussian(2, 8, 6, 6).contiguous(memory_format=torch.channels_last)
    net = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    with torch.no_grad(), fused(backend="eager"):
        result = net(x)
    for part in result.moments:
        assert part.is_contiguous(memory_format=torch.channels_last)


def test_compiled_formulas_have_the_same_gradients():
    mean, variance = (t.double().requires_grad_() for t in random_gaussian(3, 4, low=-1, high=1).moments)

    def gradients():
        result = torch.maximum(torch.relu(Gaussian(mean, variance)), torch.zeros(3, 4, dtype=torch.float64))
        return torch.autograd.grad(result.mean.sum() + result.variance.sum(), (mean, variance))

    plain = gradients()
    with fused(backend="eager"):
        compiled = gradients()
    assert all(torch.allclose(a, b) for a, b in zip(plain, compiled, strict=True))


def test_outside_the_context_nothing_is_compiled():
    with fused(False):
        assert torch.relu(random_gaussian(3)).shape == (3,)
