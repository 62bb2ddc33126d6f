import pytest
import torch
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Players
from protopfaith.shapley.estimators.moment_propagation.draws import FixedSize, Independent, sketch
from protopfaith.shapley.estimators.moment_propagation.presence import PlayerImage
from tests.moments.reference import assert_within_standard_errors
from tests.shapley.estimators.moment_propagation.networks import CONVOLUTION, PLAYERS, player_image


@pytest.mark.parametrize("kind", PLAYERS)
@torch.no_grad()
def test_coalitions_of_one_size_agree_with_sampling(kind):
    players = PLAYERS[kind]
    n = len(players)
    sizes = torch.tensor([0, 1, (n - 1) // 2, n - 1, n - 1])
    inside = torch.tensor([True, False, True, False, True])
    draw = FixedSize(torch.tensor([0, n - 1, 1, 0, 1]), inside, sizes, n)
    image, baseline, random = player_image(players, draw)
    result = CONVOLUTION(random)
    generator = torch.Generator().manual_seed(0)
    for row in range(len(draw)):
        player = int(draw.players[row])
        order = torch.rand(20_000, n, generator=generator)
        order[:, player] = 2.0  # the player itself is not drawn
        coalitions = order.argsort(1).argsort(1) < int(sizes[row])
        coalitions[:, player] = bool(inside[row])
        samples = CONVOLUTION(torch.where(players.masks(coalitions), image, baseline))
        assert_within_standard_errors(result[row], samples)


@torch.no_grad()
def test_the_authors_variant_draws_every_pixel_and_channel_by_itself():
    """The slow version: every pixel and channel is a player."""
    players = PLAYERS["windows"]
    draw = FixedSize(torch.tensor([4]), torch.tensor([True]), torch.tensor([3.0]), len(players), pixels=True)
    image, baseline, random = player_image(players, draw)
    result = CONVOLUTION(random)
    layer, change = CONVOLUTION, image - baseline
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
    _, _, random = player_image(
        players, FixedSize(torch.tensor([0]), torch.tensor([True]), torch.tensor([1]), 2)
    )
    result = CONVOLUTION(random)
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
    image, baseline, random = player_image(players, draw)
    layer, change = CONVOLUTION, image - baseline
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


def test_at_least_one_direction_is_needed():
    with pytest.raises(ProtoPFaithError, match="at least one"):
        sketch(PLAYERS["windows"].labels, 0)
