"""Metrics of the Quantus library, through Quantus itself, as an extra."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from torch import Tensor, nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import selected_distances
from protopfaith.network import PatchNetwork


class _Similarity(nn.Module):
    """Minus the distances of some prototypes, as the classifier that Quantus expects."""

    def __init__(self, model: PatchNetwork, prototypes: Sequence[int]):
        super().__init__()
        self.model = model
        self.prototypes = list(prototypes)

    def forward(self, x: Tensor) -> Tensor:
        return -selected_distances(self.model, self.prototypes)(x)


def check_quantus() -> None:
    """Raises if Quantus is not installed."""
    if find_spec("quantus") is None:
        raise ProtoPFaithError(
            "Quantus is not installed; run pip install quantus, or leave its metrics out (quantus=False)."
        )


def quantus_scores(
    model: PatchNetwork, images: Tensor, prototypes: Sequence[int], maps: Tensor, *, seed: int = 0
) -> Mapping[str, Any]:
    """Quantus' faithfulness correlation, sparseness and complexity of maps (n, H, W) on images (n, C, H, W).

    Image i is judged for prototype i. Returns arrays (n,) by metric.
    """
    check_quantus()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        quantus: Any = import_module("quantus")
        quiet: dict[str, Any] = {"disable_warnings": True, "display_progressbar": False}
        metrics = {
            "quantus_faithfulness_correlation": quantus.FaithfulnessCorrelation(
                nr_runs=50,
                subset_size=maps[0].numel() // 16,
                perturb_baseline=0.0,
                return_aggregate=False,
                **quiet,
            ),
            "quantus_sparseness": quantus.Sparseness(**quiet),
            "quantus_complexity": quantus.Complexity(**quiet),
        }
        state = np.random.get_state()
        np.random.seed(seed % 2**32)
        try:
            return {
                name: np.asarray(_score(metric, model, images, prototypes, maps))
                for name, metric in metrics.items()
            }
        finally:
            np.random.set_state(state)


def _score(
    metric: Any, model: PatchNetwork, images: Tensor, prototypes: Sequence[int], maps: Tensor
) -> list[float]:
    scores = metric(
        model=_Similarity(model, prototypes).eval(),
        x_batch=images.cpu().numpy(),
        y_batch=np.arange(len(images)),
        a_batch=maps[:, None].float().numpy(),
        device=str(images.device),
        channel_first=True,
        softmax=False,
    )
    return [float(score) for score in scores]
