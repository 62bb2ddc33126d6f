import math

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from protopfaith.dtypes import switches
from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Game, Players, estimate
from protopfaith.shapley.estimators.moment_propagation.draws import Independent
from protopfaith.shapley.estimators.moment_propagation.passes import moment_pass, player_image
from tests.shapley.estimators.moment_propagation.networks import network


@pytest.fixture(scope="module")
def digits():
    """A small network trained on scikit-learn's digits, and images of two classes."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32)[:, None] / 8 - 1
    labels = torch.tensor(data.target)
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(net(images[:600]), labels[:600]).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        assert (net(images[1000:]).argmax(1) == labels[1000:]).float().mean() > 0.85
    return net, images[[1000, 1003]], labels[[1000, 1003]]


def test_agrees_with_dasp_per_pixel(digits):
    net, images, labels = digits
    for image, label in zip(images, labels, strict=True):
        game = Game(lambda x, label=label: net(x)[:, [int(label)]], image, Players.windows((8, 8), 1), -1.0)
        path, dasp = (estimate(game, method).values[0] for method in ("moment_path", "dasp"))
        assert torch.corrcoef(torch.stack([path, dasp]))[0, 1] > 0.99


def test_values_sum_to_the_total_within_the_asked_precision(digits):
    net, images, _ = digits
    game = Game(lambda x: net(x)[:, :3], images[0], Players.windows((8, 8), 1), -1.0)
    for precision in (0.01, 1e-4):
        result = estimate(game, "moment_path", precision=precision)
        span = _range(game)
        assert bool((result.completeness_gap.abs() <= precision * span + 1e-5).all())
        assert result.reached
        assert result.precision <= precision
    assert result.options["nodes"] >= 32


def test_only_the_chosen_outputs_decide_when_to_stop(digits):
    net, images, _ = digits
    game = Game(lambda x: net(x)[:, :3], images[0], Players.windows((8, 8), 1), -1.0)
    each = [estimate(game, "moment_path", nodes=4, outputs=[k]).precision for k in range(3)]
    assert estimate(game, "moment_path", nodes=4).precision == pytest.approx(max(each))
    best = each.index(min(each))
    plan = {"nodes": 4, "precision": (min(each) + max(each)) / 2}
    chosen, every = (estimate(game, "moment_path", outputs=o, **plan) for o in ([best], None))
    assert chosen.reached
    assert every.reached
    assert chosen.evaluations < every.evaluations


def test_an_output_that_does_not_count_costs_nothing():
    """One output is smooth along the path, the other has kinks: nobody looks where those are."""
    image = torch.rand(1, 4, 4, generator=torch.Generator().manual_seed(0)) + 0.5

    def smooth(x):
        return x.flatten(1).sum(1, keepdim=True).square()

    def both(x):
        kinks = x.flatten(1).sum(1, keepdim=True) * 1e3
        return torch.cat([smooth(x), (kinks - 7e3).relu() - (kinks - 9e3).relu()], 1)

    plan = {"nodes": 1, "precision": 1e-3}
    games = [Game(function, image, Players.windows((4, 4), 1)) for function in (smooth, both)]
    alone, chosen = (estimate(game, "moment_path", outputs=[0], **plan) for game in games)
    assert chosen.reached
    assert chosen.evaluations == alone.evaluations
    assert estimate(games[1], "moment_path", **plan).evaluations > chosen.evaluations


def _range(game):
    """How far F runs, by many plain passes."""
    q = torch.linspace(0, 1, 101)
    with torch.no_grad():
        values = moment_pass(game, player_image(game).drawn(Independent(q))).double()
    return values.amax(0) - values.amin(0)


def test_its_derivatives_are_those_of_the_expectation():
    """F with one player's probability moved, by brute force over independent players."""
    torch.manual_seed(0)
    net = network().double()
    image = torch.randn(2, 9, 9, dtype=torch.float64)
    players = Players.windows((9, 9), 3)
    game = Game(net, image, players)
    theta, weights = _legendre(6)
    expected = torch.zeros(game.n_outputs, len(players), dtype=torch.float64)
    for angle, weight in zip(theta, weights, strict=True):
        q = math.sin(angle) ** 2
        for i in range(len(players)):
            moved = [_expectation(net, image, players, q, player=i, changed=q + h) for h in (1e-5, -1e-5)]
            expected[:, i] += weight * math.sin(2 * angle) * (moved[0] - moved[1]) / 2e-5
    result = estimate(game, "moment_path", nodes=6)
    assert torch.allclose(result.values, expected, rtol=1e-4, atol=1e-7)


def _legendre(count):
    import numpy as np

    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) * math.pi / 4, weights * math.pi / 4


@torch.no_grad()
def _expectation(net, image, players, q, *, player, changed):
    from protopfaith.moments import Gaussian

    probability = torch.full((len(players),), q, dtype=torch.float64)
    probability[player] = changed
    first = net[0]
    c = [
        F.conv2d((image * (players.labels == j))[None], first.weight, stride=2, padding=1)
        for j in range(len(players))
    ]
    c = torch.cat(c)
    p = probability[:, None, None, None]
    mean = first(torch.zeros_like(image)[None]) + (p * c).sum(0, keepdim=True)
    variance = (p * (1 - p) * c.square()).sum(0, keepdim=True)
    return net[1:](Gaussian(mean, variance)).moments[0][0]


@pytest.mark.parametrize("factors", [0, 4])
def test_runs_on_prototype_distances_and_stays_finite(factors):
    torch.manual_seed(0)
    model = ProtoPNet("small", 2, 1, 8, in_channels=1).eval()
    image = torch.randn(1, 24, 24)
    game = Game(model.distances, image, Players.windows((24, 24), 8))
    result = estimate(game, "moment_path", precision=0.01, factors=factors, budget=1024)
    assert result.reached
    assert result.values.shape == (2, 9)
    assert bool(torch.isfinite(result.values).all())
    assert bool((result.completeness_gap.abs() <= 0.01 * _range(game) + 1e-5).all()) or factors


def test_batches_do_not_matter():
    game = Game(
        network(),
        torch.randn(2, 9, 9, generator=torch.Generator().manual_seed(0)),
        Players.windows((9, 9), 3),
    )
    whole, parts = (estimate(game, "moment_path", nodes=8, batch_size=b).values for b in (8, 3))
    assert torch.allclose(whole, parts, atol=1e-6)


def test_an_output_that_ignores_the_image_has_no_shapley_values():
    net = network()
    game = Game(lambda x: torch.cat([net(x), net(x) * 0], 1), torch.ones(2, 9, 9), Players.windows((9, 9), 3))
    assert bool((estimate(game, "moment_path").values[3:] == 0).all())


def test_a_spent_budget_is_said():
    game = Game(network(), torch.randn(2, 9, 9), Players.windows((9, 9), 3))
    result = estimate(game, "moment_path", precision=1e-9, budget=40)
    assert not result.reached
    assert result.precision > 1e-9


def test_no_nodes_are_refused():
    game = Game(network(), torch.randn(2, 9, 9), Players.windows((9, 9), 3))
    with pytest.raises(ProtoPFaithError, match="at least one"):
        estimate(game, "moment_path", nodes=0)


def test_common_factors_are_differentiated_too():
    """Deep, with padded pooling and dead units: the sum must still come out."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(4, 6, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(6, 6, 1),
        nn.Sigmoid(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ).eval()
    nn.init.constant_(net[4].bias, -0.3)
    image = torch.randn(1, 16, 16)
    image[:, :8] = 0  # contributes nothing: no variance there
    game = Game(net, image, Players.windows((16, 16), 4))
    result = estimate(game, "moment_path", precision=1e-3, factors=4)
    assert result.reached
    assert bool((result.completeness_gap.abs() <= 2e-3 * result.total.abs().max()).all())


def test_reduced_precision_of_the_game_does_not_reach_the_path(digits):
    """A rounded F has no derivatives that add up to it: gaps would stay, however many nodes there are."""
    net, images, _ = digits

    def games():
        for dtype in (None, torch.bfloat16):
            yield Game(lambda x: net(x)[:, :3], images[0], Players.windows((8, 8), 1), -1.0, autocast=dtype)

    full, reduced = (estimate(game, "moment_path", precision=1e-3, budget=600) for game in games())
    assert reduced.reached
    assert reduced.evaluations == full.evaluations
    assert torch.allclose(reduced.values, full.values, atol=1e-6)
    assert torch.allclose(reduced.total, full.total, atol=1e-6)


def test_passes_run_without_tf32_forward_and_backward():
    those = switches(convolutions=True)
    before = [switch.read() for switch in those]
    reduced = {"ieee": "tf32", "highest": "high", False: True}
    seen = {"forward": set(), "backward": set()}

    def now():
        return {switch.read() for switch in those}

    net = network()

    def watched(x):
        output = net(x)
        if isinstance(x, Gaussian):
            seen["forward"] |= now()
            if output.moments[0].requires_grad:
                output.moments[0].register_hook(lambda _: seen["backward"].update(now()))
        return output

    game = Game(watched, torch.randn(2, 9, 9), Players.windows((9, 9), 3))
    try:
        for switch in those:
            switch.write(reduced[switch.full])
        estimate(game, "moment_path", nodes=4)
        assert now() <= set(reduced.values())  # the caller's settings are back
    finally:
        for switch, value in zip(those, before, strict=True):
            switch.write(value)
    assert seen["forward"]
    assert seen["backward"]
    assert not (seen["forward"] | seen["backward"]) & set(reduced.values())


def jagged(side=24, kinks=12):
    """Units that switch on at one density each: with many players their variance hardly smooths that."""
    generator = torch.Generator().manual_seed(0)
    first, last = nn.Conv2d(1, kinks, side), nn.Linear(kinks, 2, bias=False)
    signs = (-1.0) ** torch.arange(kinks)
    with torch.no_grad():
        first.weight.fill_(1 / side**2)
        first.bias.copy_(-torch.linspace(0.02, 0.97, kinks))
        last.weight.copy_(torch.stack([signs * torch.arange(1, kinks + 1), signs]))
    image = 1 + 0.2 * torch.randn(1, side, side, generator=generator)
    net = nn.Sequential(first, nn.ReLU(), nn.Flatten(), last).eval()
    return Game(net, image, Players.windows((side, side), 1))


def test_a_jagged_path_is_resolved_by_few_derivatives():
    game = jagged()
    assert estimate(game, "moment_path").precision > 0.05
    result = estimate(game, "moment_path", precision=0.01)
    assert result.reached
    assert bool((result.completeness_gap.abs() <= 0.01 * _range(game)).all())
    assert result.options["nodes"] < result.evaluations / 2  # most passes are values, which are cheap
