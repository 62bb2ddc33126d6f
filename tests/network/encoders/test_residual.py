from __future__ import annotations

import torch

from protopfaith.network import build_encoder


def test_the_original_resnet50_moves_strides_and_nothing_else() -> None:
    ours, original = build_encoder("resnet50").eval(), build_encoder("resnet50_v1").eval()
    original.load_state_dict(ours.state_dict())
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        first, second = ours(x), original(x)
    assert first.shape == second.shape
    assert not torch.allclose(first, second)
