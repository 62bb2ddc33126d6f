"""Tracing one network leaves those of other threads alone."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor, nn

from protopfaith.network import ProtoPNet
from protopfaith.network.tracing import trace


class Meddling(nn.Module):
    """While it is traced, another thread does something."""

    def __init__(self, doing: Any):
        super().__init__()
        self.layer, self.doing = nn.Conv2d(3, 4, 1), doing
        self.found: list[Any] = []

    def forward(self, x: Tensor) -> Tensor:
        other = threading.Thread(target=lambda: self.found.append(self.doing()))
        other.start()
        other.join(timeout=60)
        return self.layer(x).relu()


def test_another_thread_uses_its_network_meanwhile() -> None:
    model, image = ProtoPNet("small", ["cat", "dog"], 1, 8).eval(), torch.rand(1, 3, 32, 32)
    expected = model(image)
    meddling = Meddling(lambda: model(image))
    traced = trace(meddling)
    assert torch.equal(meddling.found[0], expected)
    assert "conv2d" not in traced.code  # its own layer is in the graph as a module
    assert torch.allclose(traced(image), meddling.layer(image).relu())


def test_only_one_is_traced_at_a_time() -> None:
    call = nn.Module.__call__
    threads = [threading.Thread(target=trace, args=(nn.Sequential(*[nn.ReLU()] * 50),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert nn.Module.__call__ is call
