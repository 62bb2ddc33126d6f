import pytest
import torch

from protopfaith.shapley import estimate
from protopfaith.shapley.estimators.adaptive_owen import surrogate
from protopfaith.shapley.estimators.adaptive_owen.coalitions import masks_of_sizes, random_keys, spread_sizes
from protopfaith.shapley.estimators.adaptive_owen.surrogate import (
    Surrogate,
    cross_fit,
    density_kernel,
    noise_shape,
)
from protopfaith.shapley.estimators.exact import coalitions_by_number, shapley_weights

from ...games import random_table, table_game


def random_masks(count, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.full((n - 1,), 1 / (n - 1), dtype=torch.float64)
    return masks_of_sizes(spread_sizes(uniform, 0, count, 0.1 * seed), random_keys(count, n, generator))


def fit(masks, residuals, prior, correlation, settings=surrogate.SETTINGS):
    """With one fold: the model, and what it leaves over of samples that were left out."""
    fold = torch.zeros(len(masks), dtype=torch.long)
    found = cross_fit(masks, residuals, fold, [prior], correlation=correlation, settings=settings)
    found = found.improved() or found
    return found.models[0], found.left


@pytest.mark.parametrize("n", [3, 4, 7])
def test_its_shapley_values_are_those_of_all_its_predictions(n):
    torch.manual_seed(0)
    loadings = torch.randn(5, n, dtype=torch.float64)
    loadings -= loadings.mean(1, keepdim=True)
    linear, square = torch.randn(2, 5, 2).double()
    model = Surrogate(loadings, torch.rand(5).double(), linear, square)
    coalitions = coalitions_by_number(torch.arange(2**n), n)
    inner = (coalitions.sum(1) > 0) & (coalitions.sum(1) < n)
    expected = (model(coalitions).T * inner) @ shapley_weights(coalitions)
    assert torch.allclose(model.shapley(), expected, atol=1e-10)


@pytest.mark.parametrize("setting", surrogate.SETTINGS)
def test_left_out_residuals_are_those_of_a_fit_without_the_sample(setting):
    n, m = 8, 60
    masks = random_masks(m, n)
    targets = (masks.double() - masks.double().mean(1, keepdim=True)) @ torch.arange(n).double()[:, None]
    model, left = fit(masks, targets, torch.ones(n, dtype=torch.float64), None, (setting,))
    x = masks.double() - masks.double().mean(1, keepdim=True)
    product = x @ x.T
    product /= product.diagonal().mean()
    kernel = density_kernel(model.densities, model.densities) * (product + setting[0] * product**2)
    kernel /= kernel.diagonal().mean()
    noise = setting[1] * noise_shape(model.densities, targets).double()
    for out in range(0, m, 7):
        rest = [k for k in range(m) if k != out]
        weights = torch.linalg.solve(kernel[rest][:, rest] + noise[rest].diag(), targets[rest])
        assert torch.allclose(left[out], targets[out] - kernel[out, rest] @ weights, rtol=1e-3, atol=1e-3)
    weights = torch.linalg.solve(kernel + noise.diag(), targets)
    assert torch.allclose(model(masks).double(), kernel @ weights, rtol=1e-3, atol=1e-3)


def test_interactions_and_main_effects_are_learned():
    n = 12
    masks = random_masks(1500, n)
    x = masks.double()
    y = (x[:, 0] * x[:, 1] + 2 * x[:, 2] - x[:, 3] * x[:, 4])[:, None]
    y = y - y.mean(0)
    model, left = fit(masks, y, torch.ones(n, dtype=torch.float64), None)
    assert left.square().mean() < 0.1 * y.square().mean()
    fresh = random_masks(500, n, seed=5)
    z = fresh.double()
    truth = (z[:, 0] * z[:, 1] + 2 * z[:, 2] - z[:, 3] * z[:, 4])[:, None]
    error = (model(fresh) - truth).double()
    assert (error - error.mean()).square().mean() < 0.15 * truth.var()


def test_each_fold_is_predicted_by_its_own_surrogate():
    masks, prior = random_masks(300, 10), torch.ones(10, dtype=torch.float64)
    y = masks.double() @ torch.arange(10).double()[:, None]
    y = y - y.mean(0)
    fold = torch.arange(300) % 2
    other = torch.linspace(1, 2, 10, dtype=torch.float64)
    found = cross_fit(masks, y, fold, [prior, other], correlation=None)
    found = found.improved() or found
    models, left = found.models, found.left
    for number, one in enumerate((prior, other)):
        model, alone = fit(masks, y, one, None)
        assert torch.allclose(left[fold == number], alone[fold == number], atol=1e-3)
        assert torch.allclose(models[number].shapley(), model.shapley(), atol=1e-3)


def test_noise_is_left_alone():
    masks = random_masks(600, 30)
    noise = torch.randn(600, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    _, left = fit(masks, noise, torch.ones(30, dtype=torch.float64), None)
    assert left.square().mean() < 1.05 * noise.square().mean()


def test_outputs_without_variation_do_no_harm():
    table = random_table(14)
    table[:, 1] = 4.0
    result = estimate(table_game(table), "adaptive_owen", budget=400)
    assert torch.isfinite(result.values).all()
    assert result.values[1].abs().max() < 1e-6
