"""Does it matter for AOPC whether what is removed is scattered or in one piece?"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from protopfaith.data import ImageData, Preprocessing
from protopfaith.evaluation import Faithfulness
from protopfaith.evaluation.bench.subjects import find_subjects
from protopfaith.evaluation.explainers import selected_distances
from protopfaith.evaluation.metrics.removal import aopc, removal_curves, removal_ranks
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Players, make_baseline

ORDERS = 4  # of each kind, for every prototype
COARSE = 3  # rows and columns of the noise that smooth orders come from


def scattering(
    found: Faithfulness,
    model: ProtoPNet,
    data: ImageData,
    preprocessing: Preprocessing,
    *,
    side: int,
    memory: int | None,
    autocast: torch.dtype | None,
) -> str:
    """A sentence: random orders of windows beside random orders in which neighbors go together.

    Neither knows anything of the image, so a difference tells what AOPC rewards besides faithfulness.
    """
    images, ranks, order = [], [], []
    for subject in find_subjects(model, data, found.prototypes, preprocessing):
        players = Players.windows(subject.image.shape[-2:], side)
        for prototype in subject.prototypes:
            for map_ in _maps(subject.image.shape[-2:], players, prototype):
                images.append(subject.image)
                ranks.append(removal_ranks(map_.to(subject.image.device), players))
                order.append(prototype)
    batch = torch.stack(images)
    baselines = torch.stack([make_baseline("zero", image)[0] for image in images])
    curves = removal_curves(
        selected_distances(model, order),
        batch,
        torch.stack(ranks),
        torch.arange(len(order)),
        baselines,
        steps=found.steps,
        memory=memory,
        autocast=autocast,
    )
    early = aopc(curves, 0.2).reshape(-1, 2, ORDERS).mean(2)
    scattered, together = early.mean(0).tolist()
    difference = early[:, 0] - early[:, 1]
    error = float(difference.std()) / max(len(difference), 1) ** 0.5
    return (
        f"Random orders of windows, which scatter what is removed, have an AOPC to 20% of {scattered:.3f}; "
        f"random orders in which neighbors go together have {together:.3f} (difference "
        f"{float(difference.mean()):.3f} ± {error:.3f} over prototypes, {ORDERS} orders of each kind)."
    )


def _maps(size: tuple[int, int], players: Players, seed: int) -> Tensor:
    """Noise for every window by itself, then smooth noise, (2 ORDERS, H, W)."""
    generator = torch.Generator().manual_seed(seed)
    rough = players.to_map(torch.randn(ORDERS, len(players), generator=generator))
    coarse = torch.randn(ORDERS, 1, COARSE, COARSE, generator=generator)
    smooth = functional.interpolate(coarse, size, mode="bicubic", align_corners=True)[:, 0]
    return torch.cat([rough, smooth])
