from __future__ import annotations

import torch
from torch import nn
from torchvision.models import resnet18

from protopfaith.evaluation.metrics.variants import (
    Clamp,
    Combined,
    Exchanged,
    Halves,
    Masked,
    narrowed,
    rewritten,
)
from protopfaith.network import ProtoPNet


def test_a_rewritten_network_is_the_same_function(model, image) -> None:
    other = rewritten(model)
    batch = torch.stack([image, image.flip(1), torch.zeros_like(image)])
    assert torch.allclose(other.distances(batch), model.distances(batch), atol=1e-5)
    kinds = {type(module) for module in other.modules()}
    assert {Halves, Clamp} <= kinds
    assert not kinds & {nn.BatchNorm2d, nn.ReLU}


def test_networks_with_skips_are_rewritten_too() -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(*list(resnet18().children())[:-2])
    model = ProtoPNet(encoder, 2, 1, 8).eval()
    batch = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.allclose(rewritten(model).distances(batch), model.distances(batch), rtol=1e-3, atol=1e-5)


def test_the_original_is_left_alone(model, image) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    rewritten(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_masked_network_reads_the_mask_alone(model, image) -> None:
    mask = torch.zeros(image.shape[1:], dtype=torch.bool)
    mask[:, 12:] = True
    masked = Masked(model, mask, torch.full_like(image, 0.3))
    noisy = torch.where(mask, image, torch.randn_like(image))
    assert torch.equal(masked.distances(noisy[None]), masked.distances(image[None]))
    assert torch.equal(masked.distance_maps(noisy[None]), masked.distance_maps(image[None]))
    filled = torch.where(mask, image, torch.tensor(0.3))
    assert torch.allclose(masked.distances(image[None]), model.distances(filled[None]), atol=1e-5)


def test_exchanging_two_regions_changes_nothing(model, image) -> None:
    pixels = torch.arange(24 * 24).view(24, 24)
    exchanged = Exchanged(model, pixels[:6, :6].flatten(), pixels[12:18, 6:12].flatten(), (24, 24))
    swapped = image.clone()
    swapped[:, :6, :6], swapped[:, 12:18, 6:12] = image[:, 12:18, 6:12], image[:, :6, :6]
    assert torch.allclose(exchanged.distances(swapped[None]), exchanged.distances(image[None]), atol=1e-5)
    assert not torch.allclose(model.distances(swapped[None]), model.distances(image[None]), atol=1e-5)


def test_combinations_combine(model, image) -> None:
    weights = torch.tensor([[1.0, 0.0, -0.5, 0.0], [0.0, 2.0, 0.0, 1.0]])
    distances = model.distances(image[None])
    assert torch.allclose(Combined(model, weights).distances(image[None]), distances @ weights.T)
    similar = torch.log((distances + 1) / (distances + 1e-4))
    assert torch.allclose(Combined(model, weights, "log").distances(image[None]), similar @ weights.T)
    maps = torch.einsum("op,bphw->bohw", weights, model.distance_maps(image[None]))
    assert torch.allclose(Combined(model, weights).distance_maps(image[None]), maps, atol=1e-5)


def test_fewer_prototypes_have_the_same_distances(model, image) -> None:
    pixels = torch.stack([image, image.flip(1)])
    some = narrowed(model, [3, 1])
    assert torch.allclose(some.distances(pixels), model.distances(pixels)[:, [3, 1]], atol=1e-6)
    assert some.encoder is model.encoder
    assert some.sources == [model.sources[3], model.sources[1]]
    assert some(pixels).shape == model(pixels).shape
    assert len(model.prototypes) == 4
