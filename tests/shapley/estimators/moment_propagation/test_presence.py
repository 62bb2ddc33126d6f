import pytest
import torch
from torch import nn
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.shapley.estimators.moment_propagation.draws import Independent
from tests.shapley.estimators.moment_propagation.networks import CONVOLUTION, PLAYERS, player_image

torch.manual_seed(0)
FIRST = {
    "convolution": CONVOLUTION,
    "dilated": nn.Conv2d(2, 3, 2, dilation=2, bias=False),
    "grouped": nn.Conv2d(2, 4, 3, groups=2),
    "transposed": nn.ConvTranspose2d(2, 2, 2, stride=2),
    "linear": nn.Sequential(nn.Flatten(), nn.Linear(60, 4)),
    "view": lambda x: F.linear(x.view(x.size(0), -1), torch.linspace(-1, 1, 120).reshape(2, 60)),
    "padded": nn.Sequential(nn.ZeroPad2d((1, 2, 0, 1)), nn.Conv2d(2, 3, 3)),
    "normalized": lambda x: F.conv2d(
        (x - torch.tensor([1.0, -1.0])[:, None, None]) / torch.tensor([2.0, 0.5])[:, None, None],
        CONVOLUTION.weight,
    ),
    "batch norm": nn.Sequential(nn.BatchNorm2d(2).eval(), nn.Conv2d(2, 2, 3)),
    "channels taken apart": lambda x: CONVOLUTION(
        torch.cat([torch.unsqueeze(x[:, 1], 1) * 2 + 1, torch.unsqueeze(x[:, 0], 1)], 1)
    ),
    "pooled": nn.AvgPool2d(2, padding=1),
    "pixels themselves": lambda x: x * 2 - 1,
    "in place": lambda x: CONVOLUTION(x.mul_(2)),
}


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("kind", PLAYERS)
@torch.no_grad()
def test_independent_presence_agrees_with_every_coalition(kind, first):
    """All coalitions, weighted by their probability: no sampling is needed for few players."""
    players = PLAYERS[kind]
    if len(players) > 12:
        pytest.skip("too many coalitions")
    q = torch.tensor([0.2, 0.9])
    image, baseline, random = player_image(players, Independent(q))
    result = FIRST[first](random)
    coalitions = torch.cartesian_prod(*[torch.tensor([False, True])] * len(players)).reshape(-1, len(players))
    values = FIRST[first](torch.where(players.masks(coalitions), image, baseline)).double()
    for probability, mean, variance in zip(q.double(), result.moments[0], result.variance, strict=True):
        weight = torch.where(coalitions, probability, 1 - probability).prod(1).reshape(-1, *(1,) * mean.dim())
        expected = (weight * values).sum(0)
        assert torch.allclose(mean.double(), expected, atol=1e-5)
        assert torch.allclose(variance.double(), (weight * (values - expected).square()).sum(0), atol=1e-5)


def test_what_comes_first_and_is_not_linear_sees_pixels():
    players = PLAYERS["windows"]
    image, baseline, random = player_image(players, Independent(torch.tensor([0.5])))
    result = torch.relu(random)
    plain = torch.relu(Gaussian(((image + baseline) / 2)[None], ((image - baseline).square() / 4)[None]))
    assert torch.allclose(result.mean, plain.mean, atol=1e-6)
    assert random.shape == (1, 2, 6, 5)
    assert "players=9" in repr(random)


def test_an_input_changed_in_place_by_more_than_a_scale_is_refused():
    _, _, random = player_image(PLAYERS["windows"], Independent(torch.tensor([0.5])))
    with pytest.raises(ProtoPFaithError, match="in place"):
        random.relu_()
