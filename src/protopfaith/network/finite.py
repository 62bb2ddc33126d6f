"""Where not-a-number or infinity first appears in a network."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.network.distances import squared_distances
from protopfaith.network.model import ProtoPNet


@torch.no_grad()
def first_non_finite(model: ProtoPNet, x: Tensor) -> str | None:
    """One sentence about the first thing that is not finite on the way from images ``x`` to logits, or
    None if all is well: for the error message once a loss or a distance is not a number."""
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if value.is_floating_point() and not value.isfinite().all():
            return f"The weights {name} hold {_count(value)}: the learning rate may be too high."
    if not x.isfinite().all():
        images = torch.where(~x.isfinite().flatten(1).all(1))[0].tolist()
        return f"The input holds {_count(x)} (images {images[:5]} of the batch): check the preprocessing."
    features = model.encoder(x)
    if not features.isfinite().all():
        return f"The encoder's feature map holds {_count(features)} for a finite input: its values overflow."
    latent = model.features(features)
    if not latent.isfinite().all():
        return f"The latent map holds {_count(latent)}: the values of Z overflow."
    maps = squared_distances(latent, model.prototypes)
    if not maps.isfinite().all():
        return f"The distance maps hold {_count(maps)}: latent vectors or prototypes are too large to square."
    return None


def _count(values: Tensor) -> str:
    nan, infinite = int(values.isnan().sum()), int(values.isinf().sum())
    return f"{nan} not-a-numbers and {infinite} infinities among {values.numel()} numbers"
