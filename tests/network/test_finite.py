from __future__ import annotations

import pytest
import torch

from protopfaith.network import ProtoPNet, first_non_finite


@pytest.fixture
def model():
    return ProtoPNet("small", 2, 2, 4, activation="relu").eval()


def test_nothing_to_say(model):
    assert first_non_finite(model, torch.rand(2, 3, 32, 32)) is None


def test_input(model):
    x = torch.rand(3, 3, 32, 32)
    x[1, 0, 3, 3] = torch.nan
    assert model(x)[1].isnan().all()
    assert "(images [1] of the batch)" in first_non_finite(model, x)


def test_weights(model):
    with torch.no_grad():
        model.prototypes[0, 0] = torch.inf
    assert "weights prototypes hold 0 not-a-numbers and 1 inf" in first_non_finite(
        model, torch.rand(1, 3, 32, 32)
    )


@pytest.mark.parametrize(
    ("part", "message"),
    [("encoder", "encoder's feature map"), ("features", "latent map"), ("square", "distance maps")],
)
def test_overflow(model, part, message):
    layer = model.encoder[-3] if part == "encoder" else model.features[2]
    with torch.no_grad():
        layer.weight.mul_(1e38)
        if part == "square":
            model.features[2].weight.zero_()
            model.features[2].bias.fill_(1e20)
        if part == "encoder":
            model.encoder[-2].weight.mul_(1e38)
        if part == "features":
            model.features[0].weight.mul_(1e10)
    assert message in first_non_finite(model, torch.rand(1, 3, 32, 32))
