"""Explainers of a prototype's distance: one function each, with one signature, listed in `EXPLAINERS`.

Importing this package registers all explainers in its files.
"""

from protopfaith.evaluation.explainers.common import (
    EXPLAINERS,
    DistanceModel,
    Explainable,
    Explained,
    ExplainerFunction,
    Options,
    Prepared,
    default_explainers,
    density,
    network_of,
    selected_distances,
)
from protopfaith.evaluation.explainers.games import from_attribution, game_of
from protopfaith.registry import import_modules

import_modules(__name__, __path__)

__all__ = [
    "EXPLAINERS",
    "DistanceModel",
    "Explainable",
    "Explained",
    "ExplainerFunction",
    "Options",
    "Prepared",
    "default_explainers",
    "density",
    "from_attribution",
    "game_of",
    "network_of",
    "selected_distances",
]
