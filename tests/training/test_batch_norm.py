from __future__ import annotations

import torch
from torch import nn

from protopfaith.training.batch_norm import batch_norms, held_batch_norm, hold_batch_norm


def test_held_batch_norms_neither_follow_nor_use_the_batch() -> None:
    encoder = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Dropout(0.5))
    hold_batch_norm(encoder.train())
    assert encoder.training
    assert encoder[2].training
    before = encoder[1].running_mean.clone()
    encoder(torch.randn(8, 3, 2, 2) + 5)
    assert torch.equal(encoder[1].running_mean, before)


def test_those_without_running_statistics_are_left_alone() -> None:
    encoder = nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(3, track_running_stats=False))
    assert batch_norms(encoder) == [encoder[0]]


def test_after_a_pass_with_held_batch_norms_each_follows_again_that_did() -> None:
    encoder = nn.Sequential(nn.BatchNorm2d(3), nn.Dropout(0.5), nn.BatchNorm2d(3)).train()
    encoder[2].eval()
    with held_batch_norm(encoder):
        assert [module.training for module in encoder] == [False, True, False]
    assert [module.training for module in encoder] == [True, True, False]
