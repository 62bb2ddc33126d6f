"""Shapley values of any function of images, with error bars.

>>> import torch
>>> from protopfaith.shapley import Game, Players, estimate
>>> image = torch.arange(16.0).reshape(1, 4, 4)
>>> game = Game(lambda images: images.flatten(1).sum(1), image, Players.windows((4, 4), 2))
>>> estimate(game, "exact").values.round(decimals=6).tolist()
[[10.0, 18.0, 42.0, 50.0]]
"""

from protopfaith.shapley.attribution import Attribution, redistribute, relative_error
from protopfaith.shapley.baselines import BASELINES, make_baseline
from protopfaith.shapley.estimation import ESTIMATORS, check_estimate, estimate, finish
from protopfaith.shapley.game import Game
from protopfaith.shapley.players import Players
from protopfaith.shapley.registration import Traits

from protopfaith.shapley import estimators as _estimators  # noqa: F401  isort: skip (registers them)

from protopfaith.specs import DEFAULT_METHOD

__all__ = [
    "BASELINES",
    "DEFAULT_METHOD",
    "ESTIMATORS",
    "Attribution",
    "Game",
    "Players",
    "Traits",
    "check_estimate",
    "estimate",
    "finish",
    "make_baseline",
    "redistribute",
    "relative_error",
]
