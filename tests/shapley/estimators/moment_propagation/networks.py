"""Small networks for estimators that look inside."""

import torch
from torch import nn


def network(seed=0):
    """Everything a network usually has, on 2 x 9 x 9 pixels."""
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(2, 6, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.Hardtanh(0.0, 1.0),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    nn.init.uniform_(net[4].running_var, 0.1, 0.5)
    return net.eval()


def counterexample():
    """The paper's: two 3x3 convolutions with a one at the top left, strides one and two, padding one."""
    net = nn.Sequential(
        nn.Conv2d(1, 1, 3, stride=1, padding=1, bias=False),
        nn.Conv2d(1, 1, 3, stride=2, padding=1, bias=False),
    )
    for layer in net:
        nn.init.zeros_(layer.weight)
        layer.weight.data[0, 0, 0, 0] = 1
    return net.eval()
