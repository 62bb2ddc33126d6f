"""Explainers of a prototype's distance: one function each, with one signature, listed in ``EXPLAINERS``."""

from protopfaith.evaluation.explainers.common import (
    EXPLAINERS,
    DistanceModel,
    Explainable,
    Explained,
    Explainer,
    Options,
    density,
    network_of,
    selected_distances,
)
from protopfaith.evaluation.explainers.games import from_attribution, game_of

from protopfaith.evaluation.explainers import gradients as _gradients  # noqa: F401  # isort: skip  (registers)
from protopfaith.evaluation.explainers import maps as _maps  # noqa: F401  # isort: skip  (registers)

DEFAULT_EXPLAINERS = (
    "ours",
    "owen",
    "moment_path",
    "dasp",
    "integrated_gradients",
    "gradient_shap",
    "saliency",
    "smoothgrad",
    "protopnet",
    "protopnet_crop",
    "random",
)
"""All but those that are there to test the metrics."""

__all__ = [
    "DEFAULT_EXPLAINERS",
    "EXPLAINERS",
    "DistanceModel",
    "Explainable",
    "Explained",
    "Explainer",
    "Options",
    "density",
    "from_attribution",
    "game_of",
    "network_of",
    "selected_distances",
]
