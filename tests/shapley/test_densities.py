import torch

from protopfaith.shapley.densities import anchored_mean, hat_functions, membership_weights, remove_mean

from .games import network_game


def test_weights_sum_to_zero_and_ends_have_none():
    masks = torch.rand(50, 9, generator=torch.Generator().manual_seed(0)) < 0.4
    masks[0], masks[1] = True, False
    weights = membership_weights(masks)
    assert torch.allclose(weights.sum(1), torch.zeros(50).double(), atol=1e-12)
    assert not weights[:2].any()


def test_hat_functions_interpolate_lines():
    p = torch.rand(100, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    knots = torch.sin(torch.linspace(0, torch.pi / 2, 10).double()).square()
    hats = hat_functions(p)
    assert torch.allclose(hats.sum(1), torch.ones(100).double())
    assert torch.allclose(hats @ knots, p)


def test_the_mean_is_taken_without_the_own_sample():
    game = network_game()
    p = torch.rand(40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    residuals = remove_mean(anchored_mean(game), p, values)
    for out in (0, 17, 39):
        rest = [k for k in range(40) if k != out]
        kept = anchored_mean(game)
        remove_mean(kept, p[rest], values[rest])
        curve = torch.linalg.solve(kept["left"], kept["right"])
        assert torch.allclose(residuals[out], values[out] - (hat_functions(p[[out]]) @ curve)[0])
