"""A small network for benchmarks on a CPU: trained for some seconds on the embedded birds."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

SIZE, STEPS = 32, 120


def trained_network(say: Callable[[str], None], outputs: int | None = None) -> tuple[nn.Module, Tensor]:
    """The network in eval mode and some test images, `N x 3 x 32 x 32`."""
    from protopfaith.data import load_data

    data = load_data("birds", size=SIZE)
    images = data.preprocessing.normalize(data.train.uint8())
    torch.manual_seed(0)
    classes = len(data.classes)
    model = convolutional(classes)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    right = torch.tensor(0.0)
    for _ in range(STEPS):
        batch = torch.randint(len(images), (64,))
        logits = model(images[batch])
        loss = nn.functional.cross_entropy(logits, data.train.labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right = 0.9 * right + 0.1 * (logits.argmax(1) == data.train.labels[batch]).float().mean()
    say(f"small network on birds: {float(right):.0%} of {classes} classes right after {STEPS} steps")
    spread = torch.linspace(0, len(data.test) - 1, 16).long()
    pixels = torch.stack([data.test.image(int(i)) for i in spread])
    return model.eval(), data.preprocessing.normalize(pixels)


def convolutional(outputs: int, width: int = 12) -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for stage in range(3):
        after = width * 2 ** min(stage, 2)
        layers += [
            nn.Conv2d(channels, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
        channels = after
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(channels, outputs))
