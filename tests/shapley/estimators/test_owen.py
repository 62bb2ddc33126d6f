import torch

from protopfaith.shapley import estimate
from protopfaith.shapley.estimators.owen import stratified_masks
from protopfaith.shapley.sampling import Generators

from ..games import network_game


def test_textbook_owen_converges():
    game = network_game()
    truth = estimate(game, "exact").values
    result = estimate(game, "owen", budget=20000, nodes=8)
    assert float((result.values - truth).norm() / truth.norm()) < 0.05
    assert result.options == {"nodes": 8}


def test_densities_are_stratified():
    masks = stratified_masks(0, 512, 400, Generators(torch.device("cpu"), 0))
    for block in masks.double().mean(1).chunk(2):
        assert float((block.sort().values - (torch.arange(256) + 0.5) / 256).abs().max()) < 0.15
