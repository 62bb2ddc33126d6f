from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from protopfaith.network import build_encoder
from protopfaith.training.blocks import depth_shares, encoder_blocks


class Wrapper(nn.Module):
    """Something around a network, with weights of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Parameter(torch.zeros(3))
        self.inner = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)))


@pytest.mark.parametrize("encoder", ["small", "convnet", "resnet50", Wrapper, lambda: nn.Conv2d(3, 4, 1)])
def test_every_weight_is_in_one_block(encoder) -> None:
    module = build_encoder(encoder) if isinstance(encoder, str) else encoder()
    blocks = encoder_blocks(module)
    found = [id(parameter) for block in blocks for parameter in block]
    assert sorted(found) == sorted(id(parameter) for parameter in module.parameters())
    assert all(blocks)


def test_a_resnet_has_a_block_for_each_of_its_own() -> None:
    blocks = encoder_blocks(build_encoder("resnet50"))
    assert len(blocks) == 2 + 3 + 4 + 6 + 3  # convolution and batch norm first
    assert any(parameter.shape[0] == 2048 for parameter in blocks[-1])


def test_rates_rise_in_equal_ratios() -> None:
    shares = depth_shares(5, 0.1)
    assert shares[0] == pytest.approx(0.1)
    assert shares[-1] == 1
    ratios = [later / earlier for earlier, later in itertools.pairwise(shares)]
    assert ratios == pytest.approx([ratios[0]] * 4)
    assert depth_shares(1, 0.1) == [1.0]
    assert depth_shares(3, 1.0) == [1.0] * 3
