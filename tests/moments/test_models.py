"""Public models run unchanged: without variance they give what they always give."""

import pytest
import torch
import torchvision
from torch import nn

from protopfaith.moments import Gaussian
from protopfaith.network import ProtoPNet, build_encoder

MODELS = {
    "resnet18": 48,
    "resnet50": 32,
    "resnext50_32x4d": 32,
    "wide_resnet50_2": 32,
    "vgg16": 32,
    "vgg16_bn": 32,
    "densenet121": 32,
    "mobilenet_v2": 32,
    "squeezenet1_1": 48,
    "googlenet": 32,
    "efficientnet_b0": 32,
    "shufflenet_v2_x1_0": 32,
    "mobilenet_v3_small": 32,
    "convnext_tiny": 32,
}


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_torchvision_models_run_unchanged(name):
    torch.manual_seed(0)
    # Initialization takes longer than the test; torch's default for convolutions will do.
    quick = {"init_weights": False} if name.startswith(("vgg", "googlenet")) else {}
    options = {"transform_input": True, "aux_logits": False} if name == "googlenet" else {}
    model = torchvision.models.get_model(name, **quick, **options).eval()
    _check(model, MODELS[name], 3)


@pytest.mark.parametrize("name", ["convnet", "resnet", "small"])
@torch.no_grad()
def test_our_encoders_run_unchanged(name):
    torch.manual_seed(0)
    _check(build_encoder(name, 1).eval(), 64, 1)


@pytest.mark.parametrize("activation", ["relu1", "sigmoid", "relu"])
@torch.no_grad()
def test_a_prototype_network_runs_unchanged(activation):
    torch.manual_seed(0)
    model = ProtoPNet("small", 3, 2, 8, in_channels=1, activation=activation).eval()
    _check(model, 32, 1)
    x = torch.randn(2, 1, 32, 32)
    for method in (model.latent, model.distance_maps, model.distances):
        assert torch.allclose(method(Gaussian(x)).mean, method(x), rtol=1e-4, atol=1e-5)


def _check(model: nn.Module, size: int, channels: int) -> None:
    _randomize_statistics(model)
    x = torch.randn(1, channels, size, size)
    plain, random = model(x), model(Gaussian(x, 0.0))
    assert float((random.mean - plain).abs().max()) <= 1e-4 * float(plain.abs().max())
    assert bool((random.variance == 0).all())
    uncertain = model(Gaussian(x, 0.5))
    assert uncertain.mean.shape == plain.shape
    assert bool(torch.isfinite(uncertain.mean).all())
    assert bool((uncertain.variance >= 0).all())


def _randomize_statistics(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.normal_(module.running_mean, std=0.5)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.5)
