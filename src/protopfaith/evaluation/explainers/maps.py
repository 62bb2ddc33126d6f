"""Explainers without a game: the network's own map, and random values to compare with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from protopfaith.evaluation.explainers.common import (
    EXPLAINERS,
    Explainable,
    Explained,
    Options,
    density,
    has_occurrence_maps,
    network_of,
    occurrence_maps,
)
from protopfaith.explanation.protopnet_map import crop_box, protopnet_maps, upscale


@EXPLAINERS.register("protopnet")
@torch.no_grad()
def protopnet(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """ProtoPNet's own map: the flipped distance map, up-scaled to the image; of an XProtoNet its occurrence
    map."""
    if has_occurrence_maps(model):
        seen = occurrence_maps(model, image[None])[0, list(prototypes)]
        return Explained(upscale(seen, image.shape[-2:], "bilinear").double().cpu(), shares=False)
    distances = model.distance_maps(image[None])[0, list(prototypes)]
    maps = protopnet_maps(network_of(model), distances, image.shape[-2:])
    return Explained(maps.double().cpu(), shares=False)


@EXPLAINERS.register("protopnet_crop")
def protopnet_crop(
    model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options
) -> Explained:
    """What ProtoPNet shows of a prototype, the box of its map's 95th percentile: one inside, zero outside."""
    maps = protopnet(model, image, prototypes, options).maps
    boxes = torch.zeros_like(maps)
    for box, activation in zip(boxes, maps, strict=True):
        left, top, right, bottom = crop_box(activation)
        box[top:bottom, left:right] = 1
    return Explained(boxes, shares=False)


@EXPLAINERS.register("random")
def random(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """A random number for every player: what an explainer must beat."""
    generator = torch.Generator().manual_seed(options.seed + 1_000 * prototypes[0])
    values = torch.randn(len(prototypes), len(options.players), generator=generator, dtype=torch.float64)
    return Explained(density(values, options.players), False, options.players.flat)
