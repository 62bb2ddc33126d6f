"""Networks on random variables: means and variances through any network, unchanged.

>>> import torch
>>> from protopfaith.moments import Gaussian
>>> from torch import nn
>>> network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2))
>>> output = network(Gaussian(torch.zeros(1, 1, 6, 6), 1.0))
>>> output.mean.shape, bool((output.variance > 0).all())
(torch.Size([1, 2, 2, 2]), True)
"""

from protopfaith.moments.dispatch import RULES, rule
from protopfaith.moments.elementwise import fused
from protopfaith.moments.gaussian import Gaussian

from protopfaith.moments import rules as rules  # isort: skip (registers them; they may import the above)

__all__ = ["RULES", "Gaussian", "fused", "rule", "rules"]
