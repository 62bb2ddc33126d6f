from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from protopfaith.moments import Gaussian
from protopfaith.network import ACTIVATIONS, ProtoPNet, XProtoNet
from protopfaith.network.fused import FusedProtoPNet, fuse

# With skips, without, grouped, with batch norms before convolutions, and with other activations.
ENCODERS = ["small", "convnet", "resnet", "resnet18", "resnext50_32x4d", "densenet121", "mobilenet_v3_small"]


def _model(encoder: str | nn.Module, **options: object) -> ProtoPNet:
    """With batch norms that do something."""
    torch.manual_seed(0)
    model = ProtoPNet(encoder, ["a", "b"], 3, 16, **options).eval()  # type: ignore[arg-type]
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.1)
    return model


def _images(size: int = 64) -> Tensor:
    return torch.randn(3, 3, size, size, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_distances_are_the_networks_own(encoder: str) -> None:
    model = _model(encoder, in_channels=3)
    fused, x = FusedProtoPNet(model), _images()
    found, expected = fused.distances(x), model.distances(x)
    assert fused._prepared[torch.float32] is not None, "it was not fused at all"
    assert float((found - expected).abs().max()) <= 1e-4 * float(expected.max() - expected.min())
    assert torch.equal(fused.logits(found), model.logits(found))


def test_no_batch_norm_behind_a_convolution_is_left() -> None:
    traced = fuse(_model("resnet18").encoder, "cpu")
    called = [traced.get_submodule(node.target) for node in traced.graph.nodes if node.op == "call_module"]
    assert not any(isinstance(module, nn.BatchNorm2d | nn.ReLU) for module in called)


@torch.no_grad()
def test_the_network_itself_is_not_changed() -> None:
    model, x = _model("resnet18"), _images()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    FusedProtoPNet(model).distances(x)
    after = model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


@torch.no_grad()
def test_half_precision_rounds_no_more_than_autocast() -> None:
    model, x = _model("resnet18"), _images()
    exact, fused = model.distances(x), FusedProtoPNet(model)
    with torch.autocast("cpu", torch.bfloat16):
        plain, found = model.distances(x), fused.distances(x)
    assert found.dtype == torch.float32  # prototypes are compared in full precision
    assert (found - exact).abs().mean() <= 2 * (plain - exact).abs().mean()


class Choosing(nn.Module):
    """Cannot be traced: what it does depends on what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 8, 3, stride=4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) if float(x.mean()) < 100 else x[:, :1].expand(-1, 8, -1, -1)


class Shared(nn.Module):
    """One convolution, read through two batch norms and by itself: nothing may be folded."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.one, self.two = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        return torch.relu(self.one(y) + self.two(self.layer(x + 1)) + y)


@pytest.mark.parametrize("encoder", [Choosing(), Shared()])
@torch.no_grad()
def test_encoders_that_cannot_be_fused_are_right_all_the_same(encoder: nn.Module) -> None:
    model, x = _model(encoder), _images(32)
    assert torch.allclose(FusedProtoPNet(model).distances(x), model.distances(x), atol=1e-5)


def test_gradients_and_random_variables_go_through_the_network() -> None:
    model, x = _model("small"), _images(32).requires_grad_()
    fused = FusedProtoPNet(model)
    fused.distances(x).sum().backward()
    assert x.grad is not None
    assert float(x.grad.abs().sum()) > 0
    random = Gaussian(_images(32), torch.full((3, 3, 32, 32), 0.1))
    with torch.no_grad():
        assert torch.equal(fused.distances(random).mean, model.distances(random).mean)  # type: ignore[arg-type]


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@torch.no_grad()
def test_every_activation_is_fused(activation: str) -> None:
    """Also in half precision, where a unit vector's length must not be rounded away."""
    model = _model("small", activation=activation)
    fused, x = FusedProtoPNet(model), _images()
    expected = model.distances(x)
    scale = float(expected.max())
    assert float((fused.distances(x) - expected).abs().max()) <= 1e-4 * scale
    assert fused._prepared[torch.float32] is not None, "it was not fused at all"
    with torch.autocast("cpu", torch.bfloat16):
        assert float((fused.distances(x) - expected).abs().max()) <= 0.05 * scale


@torch.no_grad()
def test_a_network_that_pools_is_fused() -> None:
    torch.manual_seed(0)
    model = XProtoNet("small", ["edema", "mass"], 4, 16).eval()
    fused, x = FusedProtoPNet(model), _images()
    found, expected = fused.distances(x), model.distances(x)
    assert fused._prepared[torch.float32] is not None, "it was not fused at all"
    assert float((found - expected).abs().max()) <= 1e-4 * float(expected.max())
    with torch.autocast("cpu", torch.bfloat16):
        rounded = fused.distances(x)
    assert float((rounded - expected).abs().max()) <= 0.05 * float(expected.max())
