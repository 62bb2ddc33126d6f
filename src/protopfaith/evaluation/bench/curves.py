"""Removal curves of maps: every baseline, both directions, shared regions and the map's own units."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.evaluation.bench.settings import BenchSettings
from protopfaith.evaluation.explainers import Explainable, Explained, Options, selected_distances
from protopfaith.evaluation.metrics.removal import removal_curves, removal_ranks
from protopfaith.shapley import make_baseline


class RemovalCurves:
    """The images (n, C, H, W) of `prototypes`, one each, and what stands for their removed pixels."""

    def __init__(
        self, model: Explainable, images: Tensor, prototypes: Sequence[int], settings: BenchSettings
    ):
        self.model, self.images, self.prototypes, self.settings = model, images, list(prototypes), settings

    def of(self, explained: Explained, prototypes: Sequence[int], options: Options) -> dict[str, np.ndarray]:
        """Curves (n, T + 1) of the maps of some prototypes: "zero", "blur", "mean", "insertion", and "own",
        which removes the map's own units instead of the regions that all explainers share."""
        alike = self._ranks(explained, prototypes, same=True)
        own = alike if explained.regions is not None else self._ranks(explained, prototypes, same=False)
        rows = torch.tensor([self.prototypes.index(p) for p in prototypes], device=self.images.device)

        def curves(ranks: Tensor, baseline: str, insertion: bool = False) -> np.ndarray:
            return removal_curves(
                selected_distances(self.model, prototypes),
                self.images[rows],
                ranks,
                torch.arange(len(prototypes)),
                self._baselines[baseline][rows],
                steps=self.settings.steps,
                insertion=insertion,
                batch_size=options.batch_size,
                autocast=options.autocast,
            ).numpy()

        found = {kind: curves(alike, kind) for kind in self._baselines}
        found["insertion"] = curves(alike, "zero", insertion=True)
        found["own"] = found["zero"] if own is alike else curves(own, "zero")
        return found

    def _ranks(self, explained: Explained, prototypes: Sequence[int], *, same: bool) -> Tensor:
        regions = self.settings.options.players if same else explained.regions
        ranks = []
        for one, prototype in zip(explained.maps, prototypes, strict=True):
            generator = torch.Generator().manual_seed(self.settings.options.seed + prototype)
            ranks.append(removal_ranks(one.to(self.images.device), regions, generator))
        return torch.stack(ranks)

    @cached_property
    def _baselines(self) -> dict[str, Tensor]:
        """What stands for removed pixels, (n, C, H, W)."""
        options: dict[str, dict[str, Any]] = {
            "zero": {},
            "blur": {},
            "mean": {"value": list(self.settings.mean_color)},
        }
        return {
            name: torch.stack([make_baseline(name, image, **more)[0] for image in self.images])
            for name, more in options.items()
        }
