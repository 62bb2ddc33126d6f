import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.moments.rules.linear import weighted_sum
from tests.moments.reference import assert_within_standard_errors, random_gaussian, sample


def _norm(norm):
    nn.init.uniform_(norm.running_var, 0.5, 2)
    for parameter in (norm.running_mean, norm.weight, norm.bias):
        nn.init.normal_(parameter)
    return norm.eval()


torch.manual_seed(0)
MAPS = {
    "conv1d": (nn.Conv1d(2, 3, 3, stride=2, padding=1), (2, 7)),
    "conv2d": (nn.Conv2d(2, 4, 3, padding=1), (2, 5, 6)),
    "conv2d same": (nn.Conv2d(2, 4, 3, padding="same"), (2, 5, 6)),
    "conv2d grouped": (nn.Conv2d(4, 4, 3, groups=2, bias=False), (4, 5, 5)),
    "conv2d depthwise": (nn.Conv2d(3, 6, 3, groups=3, stride=2), (3, 5, 5)),
    "conv2d dilated": (nn.Conv2d(1, 2, 3, dilation=2), (1, 7, 6)),
    "conv3d": (nn.Conv3d(1, 2, 2), (1, 3, 3, 4)),
    "transposed 1d": (nn.ConvTranspose1d(2, 3, 3, stride=2), (2, 4)),
    "transposed 2d": (nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1), (2, 3, 3)),
    "transposed 3d": (nn.ConvTranspose3d(1, 2, 2, stride=2), (1, 2, 2, 2)),
    "linear": (nn.Linear(6, 4), (6,)),
    "linear on sequences": (nn.Linear(3, 4, bias=False), (5, 3)),
    "batch norm 1d": (_norm(nn.BatchNorm1d(5)), (5,)),
    "batch norm 2d": (_norm(nn.BatchNorm2d(3)), (3, 4, 4)),
    "batch norm plain": (nn.BatchNorm2d(3, affine=False).eval(), (3, 4, 4)),
    "avg_pool1d": (nn.AvgPool1d(3, 2, padding=1), (2, 7)),
    "avg_pool2d": (nn.AvgPool2d(2), (2, 4, 6)),
    "avg_pool2d padded": (nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), (2, 5, 5)),
    "avg_pool2d ceil": (nn.AvgPool2d(3, 2, ceil_mode=True), (1, 6, 6)),
    "avg_pool2d divisor": (nn.AvgPool2d(2, divisor_override=3), (1, 4, 4)),
    "avg_pool3d": (nn.AvgPool3d(2, padding=1), (1, 3, 3, 3)),
    "adaptive 1d": (nn.AdaptiveAvgPool1d(3), (2, 7)),
    "adaptive 2d": (nn.AdaptiveAvgPool2d((2, 3)), (2, 5, 7)),
    "adaptive to one": (nn.AdaptiveAvgPool2d(1), (3, 4, 4)),
    "mean": (lambda x: x.mean([2, 3]), (2, 3, 4)),
    "mean of all": (torch.mean, (2, 3)),
    "mean keepdim": (lambda x: torch.mean(x, dim=1, keepdim=True), (3, 4)),
    "sum": (lambda x: x.sum(dim=(1, 2)), (2, 3, 4)),
}


def _wide(function):
    return copy.deepcopy(function).double() if isinstance(function, nn.Module) else function


@pytest.mark.parametrize("name", MAPS)
def test_linear_maps_equal_their_matrix(name):
    """The slow version: the map's matrix, whose squares act on the variance."""
    function, shape = MAPS[name]
    x = random_gaussian(1, *shape)
    mean, variance = (part.double() for part in x.moments)
    wide = _wide(function)
    matrix = torch.autograd.functional.jacobian(wide, mean).detach()
    matrix = matrix.reshape(-1, mean.numel())
    result = wide(Gaussian(mean, variance))
    narrow = function(x)
    assert torch.allclose(result.mean, wide(mean))
    assert torch.allclose(result.variance.flatten(), matrix.square() @ variance.flatten())
    assert torch.allclose(narrow.variance.double(), result.variance, rtol=1e-4)
    assert bool((narrow.variance >= 0).all())


@pytest.mark.parametrize("name", MAPS)
@torch.no_grad()
def test_linear_maps_agree_with_sampling(name):
    function, shape = MAPS[name]
    if name == "mean of all":
        pytest.skip("would average the samples, too")
    x = random_gaussian(1, *shape, low=-1, high=1)
    wide = _wide(function)
    samples = wide(sample(*(part[0] for part in x.moments), 20_000))
    result = function(x)
    assert_within_standard_errors(result[0] if result.dim() == samples.dim() else result, samples)


@pytest.mark.parametrize("name", ["conv2d", "linear", "batch norm 2d", "avg_pool2d padded", "mean", "sum"])
@torch.no_grad()
def test_common_factors_pass_through_the_map_itself(name):
    function, shape = MAPS[name]
    x = random_gaussian(1, *shape, low=-1, high=1)
    factors = torch.randn(3, 1, *shape, generator=torch.Generator().manual_seed(2))
    result = function(Gaussian(x.mean, x.variance + factors.square().sum(0), factors))
    zero = function(torch.zeros(1, *shape))
    expected = torch.stack([function(factor) - zero for factor in factors])
    assert torch.allclose(result.factors, expected, atol=1e-5)
    independent = function(x).variance
    assert torch.allclose(result.variance, independent + expected.square().sum(0), rtol=1e-4, atol=1e-5)


def _conv2d_by_fft(x, weight, bias=None):
    """What fast convolutions do: no longer a sum of products, so it can fall below zero."""
    size = x.shape[-2:]
    product = torch.einsum("bihw,oihw->bohw", torch.fft.rfft2(x), torch.fft.rfft2(weight, size).conj())
    found = torch.fft.irfft2(product, size)[..., : size[0] - 2, : size[1] - 2]
    return found if bias is None else found + bias[:, None, None]


def test_fast_convolutions_leave_no_negative_variance():
    """Variances span many orders of magnitude, as near the ends of a path through coalitions."""
    generator = torch.Generator().manual_seed(0)
    weight, mean = (
        torch.randn(4, 3, 3, 3, generator=generator),
        torch.randn(2, 3, 16, 16, generator=generator),
    )
    variance = torch.zeros(2, 3, 16, 16)
    variance[..., :3, :3] = 1e3
    torch.testing.assert_close(_conv2d_by_fft(mean, weight), F.conv2d(mean, weight), rtol=1e-4, atol=1e-4)
    assert (_conv2d_by_fft(variance, weight.square()) < 0).any()
    result = weighted_sum(_conv2d_by_fft, Gaussian(mean, variance), weight)
    assert (result.variance >= 0).all()
    assert torch.relu(result).mean.isfinite().all()


def test_gradients_reach_weights_and_inputs():
    layer = nn.Conv2d(1, 1, 3)
    mean, variance = torch.randn(1, 1, 4, 4, requires_grad=True), torch.ones(1, 1, 4, 4, requires_grad=True)
    layer(Gaussian(mean, variance)).variance.sum().backward()
    assert torch.allclose(layer.weight.grad, 2 * layer.weight.detach() * 4)
    assert variance.grad is not None
    assert mean.grad is None


def test_training_statistics_have_no_rule():
    with pytest.raises(ProtoPFaithError, match=r"from 1 \(BatchNorm2d\)|in 1 \(BatchNorm2d\).*model.eval"):
        nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))(Gaussian(torch.zeros(2, 1, 3, 3)))


def test_random_weights_have_no_rule():
    with pytest.raises(ProtoPFaithError, match=r"no moment rule for torch.nn.functional.linear"):
        F.linear(torch.zeros(2, 3), Gaussian(torch.zeros(4, 3), 1.0))


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("count", [16, 96, 384])
def test_layer_norm_is_close_to_sampling(count, spread):
    """An approximation: the error shrinks with the number of variables; what remains is stated here."""
    generator = torch.Generator().manual_seed(count)
    mean = torch.randn(4, count, generator=generator, dtype=torch.float64)
    variance = spread * torch.rand(4, count, generator=generator, dtype=torch.float64)
    weight, bias = torch.rand(2, count, generator=generator, dtype=torch.float64)
    result = F.layer_norm(Gaussian(mean, variance), (count,), weight, bias)
    samples = F.layer_norm(sample(mean, variance, 20_000, seed=1), (count,), weight, bias)
    deviation = samples.std(0)
    noise = 5 / 20_000**0.5
    assert float(((result.mean - samples.mean(0)) / deviation).abs().max()) <= noise + 1 / count
    relative = (result.variance / deviation.square() - 1).abs()
    assert float(relative.max()) <= 2 * noise + 4 / count


@torch.no_grad()
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm_is_layer_norm_of_each_group(groups):
    generator = torch.Generator().manual_seed(groups)
    mean = torch.randn(2, 4, 6, 5, generator=generator, dtype=torch.float64)
    variance = torch.rand(2, 4, 6, 5, generator=generator, dtype=torch.float64)
    module = torch.nn.GroupNorm(groups, 4).double()
    torch.nn.init.normal_(module.weight, generator=generator)
    torch.nn.init.normal_(module.bias, generator=generator)
    result, plain = module(Gaussian(mean, variance)), module(Gaussian(mean, 0.0))
    torch.testing.assert_close(plain.mean, module(mean))
    assert not plain.variance.any()
    samples = module(sample(mean, variance, 20_000, seed=1).flatten(0, 1)).unflatten(0, (20_000, 2))
    count, noise = 120 / groups, 5 / 20_000**0.5
    assert float(((result.mean - samples.mean(0)) / samples.std(0)).abs().max()) <= noise + 1 / count
    assert float((result.variance / samples.var(0) - 1).abs().max()) <= 2 * noise + 4 / count


def test_layer_norm_follows_common_factors():
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(2, 64, generator=generator, dtype=torch.float64)
    factors = 0.5 * torch.randn(3, 2, 64, generator=generator, dtype=torch.float64)
    own = 0.1
    e = torch.randn(20_000, 3, generator=generator, dtype=torch.float64)
    noise = torch.randn(20_000, 2, 64, generator=generator, dtype=torch.float64)
    samples = F.layer_norm(mean + torch.einsum("nk,kij->nij", e, factors) + own**0.5 * noise, (64,))
    result = F.layer_norm(Gaussian(mean, own + factors.square().sum(0), factors), (64,))
    plain = F.layer_norm(Gaussian(mean, own + factors.square().sum(0)), (64,))
    covariance = torch.einsum("nk,nij->kij", e, samples) / len(e)
    error = float((result.factors - covariance).square().mean().sqrt())
    assert error <= 0.1 * float(covariance.square().mean().sqrt())
    truth = samples.var(0)
    assert float((result.variance - truth).abs().mean()) <= 0.1 * float(truth.mean())
    lost = (plain.variance - truth).abs().mean()
    assert float((result.variance - truth).abs().mean()) < float(lost)
