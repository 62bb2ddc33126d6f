from __future__ import annotations

import pytest
import torch
from torch import nn

from protopfaith.network.encoders.convolutional import Block, convnet, resnet, small


def test_the_convnet_is_the_resnet_without_skips() -> None:
    plain, residual = convnet(), resnet()
    assert {name for name, _ in plain.named_parameters()} < {name for name, _ in residual.named_parameters()}
    assert all(block.skip is None for block in plain.modules() if isinstance(block, Block))


@pytest.mark.parametrize("stride", [1, 2])
def test_a_block_adds_its_input(stride) -> None:
    block = Block(4, 4 * stride, stride, skip=True).eval()
    with torch.no_grad():
        for parameter in block.layers.parameters():
            parameter.zero_()
    x = torch.rand(1, 4, 8, 8)
    expected = x if stride == 1 else block.skip(x)
    assert torch.allclose(block(x), expected.relu())


def test_the_small_encoder_halves_three_times() -> None:
    encoder = small().eval()
    assert encoder(torch.rand(1, 3, 96, 96)).shape == (1, 96, 12, 12)
    assert sum(isinstance(layer, nn.Conv2d) for layer in encoder) == 5
