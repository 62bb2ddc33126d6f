import warnings

import pytest
import torch

from protopfaith.shapley import Players
from protopfaith.shapley.estimators.adaptive_owen.smoothing import (
    LARGEST_DENSE,
    Neighborhood,
    _correlated_mean,
    _posterior,
    positions,
    shrink,
    smoothing_matrix,
)

PLAYERS = Players.windows((40, 40), 4)
NEAR = Neighborhood.of(PLAYERS)


def peaked_map(seed=0, outputs=1):
    """A blob with a sign structure on an empty background, 10 x 10."""
    generator = torch.Generator().manual_seed(seed)
    rows, columns = torch.meshgrid(torch.arange(10), torch.arange(10), indexing="ij")
    center = 2 + 6 * torch.rand(outputs, 2, generator=generator)
    distance = (rows - center[:, :1, None]) ** 2 + (columns - center[:, 1:, None]) ** 2
    wiggle = 1 + 0.5 * torch.randn(outputs, 10, 10, generator=generator)
    return (torch.exp(-distance / 4) * wiggle).reshape(outputs, 100).double()


def test_the_posterior_mean_is_the_textbook_one():
    torch.manual_seed(0)
    estimates, prior = torch.randn(2, 100).double(), torch.rand(2, 100).double()
    noise = 0.1 + torch.rand(2, 100).double()
    mean = _correlated_mean(estimates, noise, prior, NEAR.correlation)
    for row in range(2):
        t = prior[row].sqrt()
        covariance = t[:, None] * NEAR.correlation * t
        expected = covariance @ torch.linalg.solve(covariance + noise[row].diag(), estimates[row])
        assert torch.allclose(mean[row], expected, atol=1e-4)


def test_the_posterior_variance_is_exact_for_a_uniform_prior():
    noise, prior = torch.full((1, 100), 0.5).double(), torch.full((1, 100), 2.0).double()
    _, left = _posterior(torch.zeros(1, 100).double(), noise, prior, NEAR)
    covariance = 2.0 * NEAR.correlation
    eye = torch.eye(100).double()
    expected = (covariance - covariance @ torch.linalg.solve(covariance + 0.5 * eye, covariance)).diagonal()
    assert torch.allclose(left[0], expected, rtol=0.02)


@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_shrinking_helps_and_knows_how_far(noise):
    truth = peaked_map(outputs=40)
    generator = torch.Generator().manual_seed(1)
    estimates = truth + noise * torch.randn(truth.shape, generator=generator, dtype=torch.float64)
    mean, left = shrink(estimates, torch.full_like(truth, noise**2), NEAR)
    assert (mean - truth).square().mean() < 0.7 * noise**2
    covered = ((mean - truth).abs() < 1.96 * left.sqrt()).double().mean()
    assert 0.92 < covered < 0.99


def test_without_noise_nothing_moves():
    truth = peaked_map()
    assert torch.equal(shrink(truth, torch.zeros_like(truth), NEAR)[0], truth)
    nearly, _ = shrink(truth, torch.full_like(truth, 1e-12), NEAR)
    assert torch.allclose(nearly, truth, atol=1e-4)


def test_many_players_use_a_sparse_smoothing():
    players = Players.windows((34, 34), 1)
    assert len(players) > LARGEST_DENSE
    near = Neighborhood.of(players)
    assert near.correlation is None
    dense_weights = torch.exp(-torch.cdist(positions(players), positions(players)).square() / 2)
    dense = dense_weights / dense_weights.sum(1, keepdim=True)
    maps = torch.randn(2, len(players)).double()
    ours = (smoothing_matrix(positions(players), 1.0) @ maps.T).T
    assert torch.allclose(ours, maps @ dense.T, atol=0.02)
    mean, left = shrink(maps, torch.full_like(maps, 4.0), near)
    assert mean.square().mean() < maps.square().mean()
    assert (left > 0).all()


def test_distances_are_in_units_of_the_spacing_and_channels_lie_apart():
    places = positions(Players.windows((8, 8), 4, channels=2))
    assert torch.cdist(places[:1], places[1:2]).item() == pytest.approx(1)
    assert torch.cdist(places[:1], places[4:5]).item() == pytest.approx(1)


def test_many_players_make_no_warnings():
    players = Players.windows((40, 40), 1)
    assert len(players) > LARGEST_DENSE
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            matrix = smoothing_matrix(positions(players), 1.5)
            assert torch.allclose(matrix @ torch.ones(1600, 1).double(), torch.ones(1600, 1).double())
    finally:
        torch.set_warn_always(before)
