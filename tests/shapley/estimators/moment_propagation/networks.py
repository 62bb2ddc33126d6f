"""Small networks for estimators that look inside, and images whose players are drawn."""

import torch
from torch import nn

from protopfaith.shapley import Players
from protopfaith.shapley.estimators.moment_propagation.presence import PlayerImage

PLAYERS = {
    "windows": Players.windows((6, 5), 2),
    "pixels": Players.windows((6, 5), 1),
    "two halves": Players.windows((6, 5), (3, 5)),
    "channels apart": Players.windows((6, 5), 3, channels=2),
    "any shape": Players(torch.randint(0, 5, (6, 5), generator=torch.Generator().manual_seed(1))),
}
torch.manual_seed(0)
CONVOLUTION = nn.Conv2d(2, 3, 3, stride=2, padding=1)


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


def player_image(players, draw):
    """An image, its baseline, and the image with players present as `draw` has them."""
    generator = torch.Generator().manual_seed(5)
    image, baseline = torch.randn(2, 2, 6, 5, generator=generator)
    return image, baseline, PlayerImage.of(image, baseline, players.labels, draw)
