import torch

from protopfaith.shapley import estimate
from protopfaith.shapley.estimators.owen import stratified_masks

from ..games import network_game


def test_textbook_owen_converges():
    game = network_game()
    truth = estimate(game, "exact").values
    result = estimate(game, "owen", budget=20000, nodes=8)
    assert float((result.values - truth).norm() / truth.norm()) < 0.05
    assert result.options == {"nodes": 8}


def test_densities_are_stratified():
    masks = stratified_masks(1000, 400, torch.Generator().manual_seed(0))
    wanted = (torch.arange(1000) + 0.5) / 1000
    assert float((masks.double().mean(1) - wanted).abs().max()) < 0.15
