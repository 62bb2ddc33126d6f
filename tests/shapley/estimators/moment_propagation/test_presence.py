import pytest
import torch
from torch import nn
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.shapley import Players
from protopfaith.shapley.estimators.moment_propagation.draws import FixedSize, Independent, sketch
from protopfaith.shapley.estimators.moment_propagation.presence import PlayerImage
from tests.moments.reference import assert_within_standard_errors

PLAYERS = {
    "windows": Players.windows((6, 5), 2),
    "pixels": Players.windows((6, 5), 1),
    "two halves": Players.windows((6, 5), (3, 5)),
    "channels apart": Players.windows((6, 5), 3, channels=2),
    "any shape": Players(torch.randint(0, 5, (6, 5), generator=torch.Generator().manual_seed(1))),
}
torch.manual_seed(0)
FIRST = {
    "convolution": nn.Conv2d(2, 3, 3, stride=2, padding=1),
    "dilated": nn.Conv2d(2, 3, 2, dilation=2, bias=False),
    "grouped": nn.Conv2d(2, 4, 3, groups=2),
    "transposed": nn.ConvTranspose2d(2, 2, 2, stride=2),
    "linear": nn.Sequential(nn.Flatten(), nn.Linear(60, 4)),
    "view": lambda x: F.linear(x.view(x.size(0), -1), torch.linspace(-1, 1, 120).reshape(2, 60)),
    "padded": nn.Sequential(nn.ZeroPad2d((1, 2, 0, 1)), nn.Conv2d(2, 3, 3)),
    "normalized": lambda x: F.conv2d(
        (x - torch.tensor([1.0, -1.0])[:, None, None]) / torch.tensor([2.0, 0.5])[:, None, None],
        FIRST["convolution"].weight,
    ),
    "batch norm": nn.Sequential(nn.BatchNorm2d(2).eval(), nn.Conv2d(2, 2, 3)),
    "channels taken apart": lambda x: FIRST["convolution"](
        torch.cat([torch.unsqueeze(x[:, 1], 1) * 2 + 1, torch.unsqueeze(x[:, 0], 1)], 1)
    ),
    "pooled": nn.AvgPool2d(2, padding=1),
    "pixels themselves": lambda x: x * 2 - 1,
    "in place": lambda x: FIRST["convolution"](x.mul_(2)),
}


def _image(players, draw):
    generator = torch.Generator().manual_seed(5)
    image, baseline = torch.randn(2, 2, 6, 5, generator=generator)
    return image, baseline, PlayerImage.of(image, baseline, players.labels, draw)


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("kind", PLAYERS)
@torch.no_grad()
def test_independent_presence_agrees_with_every_coalition(kind, first):
    """All coalitions, weighted by their probability: no sampling is needed for few players."""
    players = PLAYERS[kind]
    if len(players) > 12:
        pytest.skip("too many coalitions")
    q = torch.tensor([0.2, 0.9])
    image, baseline, random = _image(players, Independent(q))
    result = FIRST[first](random)
    coalitions = torch.cartesian_prod(*[torch.tensor([False, True])] * len(players)).reshape(-1, len(players))
    values = FIRST[first](torch.where(players.masks(coalitions), image, baseline)).double()
    for probability, mean, variance in zip(q.double(), result.moments[0], result.variance, strict=True):
        weight = torch.where(coalitions, probability, 1 - probability).prod(1).reshape(-1, *(1,) * mean.dim())
        expected = (weight * values).sum(0)
        assert torch.allclose(mean.double(), expected, atol=1e-5)
        assert torch.allclose(variance.double(), (weight * (values - expected).square()).sum(0), atol=1e-5)


@pytest.mark.parametrize("kind", PLAYERS)
@torch.no_grad()
def test_coalitions_of_one_size_agree_with_sampling(kind):
    players = PLAYERS[kind]
    n = len(players)
    sizes = torch.tensor([0, 1, (n - 1) // 2, n - 1, n - 1])
    inside = torch.tensor([True, False, True, False, True])
    draw = FixedSize(torch.tensor([0, n - 1, 1, 0, 1]), inside, sizes, n)
    image, baseline, random = _image(players, draw)
    result = FIRST["convolution"](random)
    generator = torch.Generator().manual_seed(0)
    for row in range(len(draw)):
        player = int(draw.players[row])
        order = torch.rand(20_000, n, generator=generator)
        order[:, player] = 2.0  # the player itself is not drawn
        coalitions = order.argsort(1).argsort(1) < int(sizes[row])
        coalitions[:, player] = bool(inside[row])
        samples = FIRST["convolution"](torch.where(players.masks(coalitions), image, baseline))
        assert_within_standard_errors(result[row], samples)


@torch.no_grad()
def test_the_authors_variant_draws_every_pixel_and_channel_by_itself():
    """The slow version: every pixel and channel is a player."""
    players = PLAYERS["windows"]
    draw = FixedSize(torch.tensor([4]), torch.tensor([True]), torch.tensor([3.0]), len(players), pixels=True)
    image, baseline, random = _image(players, draw)
    result = FIRST["convolution"](random)
    layer, change = FIRST["convolution"], image - baseline
    entries = torch.eye(60).reshape(60, 2, 6, 5)
    c = layer(entries * change) - layer(torch.zeros(1, 2, 6, 5))
    own = (entries * (players.labels == 4)).flatten(1).any(1)
    others, n, fraction = c[~own], int((~own).sum()), 3 / (len(players) - 1)
    size = fraction * n
    mean = layer(baseline[None])[0] + others.sum(0) * fraction + c[own].sum(0)
    variance = size * (n - size) / (n - 1) * (others.square().mean(0) - others.mean(0).square())
    assert torch.allclose(result.mean[0], mean, atol=1e-5)
    assert torch.allclose(result.variance[0], variance, atol=1e-5)


def test_a_player_that_covers_everything_is_certain():
    players = Players.windows((6, 5), (6, 3))
    _, _, random = _image(players, FixedSize(torch.tensor([0]), torch.tensor([True]), torch.tensor([1]), 2))
    result = FIRST["convolution"](random)
    assert bool(torch.isfinite(result.mean).all())
    assert torch.equal(result.variance, torch.zeros_like(result.variance))


@pytest.mark.parametrize("kind", ["windows", "any shape"])
@pytest.mark.parametrize("fixed", [False, True])
@torch.no_grad()
def test_with_a_direction_per_player_the_covariance_is_exact(kind, fixed):
    players = PLAYERS[kind]
    n = len(players)
    directions = sketch(players.labels, n)
    if fixed:
        player, size = 2, 3
        draw = FixedSize(
            torch.tensor([player]), torch.tensor([False]), torch.tensor([size]), n, False, directions
        )
    else:
        draw = Independent(torch.tensor([0.3]), directions)
    image, baseline, random = _image(players, draw)
    layer, change = FIRST["convolution"], image - baseline
    result = layer(random)
    c = torch.stack([layer((change * (players.masks(row[None])[0]))[None])[0] for row in torch.eye(n).bool()])
    c = (c - layer(torch.zeros(1, 2, 6, 5))).flatten(1)
    if fixed:
        c = torch.cat([c[:player], c[player + 1 :]])
        m = n - 1
        c = c - c.mean(0)
        expected = size * (m - size) / (m * (m - 1)) * c.T @ c
    else:
        expected = 0.3 * 0.7 * c.T @ c
    factors = result.factors[:, 0].flatten(1)
    assert torch.allclose(factors.T @ factors, expected, atol=1e-5)
    assert torch.allclose(result.variance.flatten(), expected.diagonal(), atol=1e-5)


@torch.no_grad()
def test_the_sketch_is_right_for_neighbors_and_unbiased_beyond():
    players = Players.windows((16, 16), 2)
    image = torch.randn(1, 16, 16, generator=torch.Generator().manual_seed(0))
    layer = nn.Conv2d(1, 2, 3, padding=1, bias=False)
    exact, rough = (
        layer(PlayerImage.of(image, 0 * image, players.labels, Independent(torch.tensor([0.5]), d)))
        for d in (sketch(players.labels, 64), sketch(players.labels, 9))
    )
    assert torch.allclose(rough.variance, rough.factors.square().sum(0), atol=1e-6)
    cov = [x.factors[:, 0].flatten(1).T @ x.factors[:, 0].flatten(1) for x in (exact, rough)]
    row = torch.arange(2 * 256) % 256 // 16
    column = torch.arange(2 * 256) % 16
    near = ((row[:, None] - row).abs() <= 2) & ((column[:, None] - column).abs() <= 2)
    assert torch.allclose(cov[0][near], cov[1][near], atol=1e-6)


def test_what_comes_first_and_is_not_linear_sees_pixels():
    players = PLAYERS["windows"]
    image, baseline, random = _image(players, Independent(torch.tensor([0.5])))
    result = torch.relu(random)
    plain = torch.relu(Gaussian(((image + baseline) / 2)[None], ((image - baseline).square() / 4)[None]))
    assert torch.allclose(result.mean, plain.mean, atol=1e-6)
    assert random.shape == (1, 2, 6, 5)
    assert "players=9" in repr(random)


def test_an_input_changed_in_place_by_more_than_a_scale_is_refused():
    _, _, random = _image(PLAYERS["windows"], Independent(torch.tensor([0.5])))
    with pytest.raises(ProtoPFaithError, match="in place"):
        random.relu_()
