"""ProtoPNet's own explanation, for comparison: the flipped distance map, up-scaled, and its crop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from protopfaith.annotations import check_arguments
from protopfaith.arguments import finite_number, shown, tensor
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decomposition import similarities
from protopfaith.limits import check_pixels
from protopfaith.network import PrototypeNetwork

BOUNDED = ("relu1", "sigmoid")  # latent values lie in [0, 1], so no squared distance exceeds L
INTERPOLATIONS = {"bilinear": "bilinear", "cubic": "bicubic"}


def flip(model: PrototypeNetwork, maps: Tensor) -> Tensor:
    """Distance maps (..., h, w) as activation maps, large where the prototype is near.

    Linear similarity: the largest distance there can be minus the distance, which is L for latent values
    in [0, 1] and 4 for vectors of length 1; without such a bound (ReLU) the largest one of each map. Log
    similarity: log((s + 1) / (s + epsilon)).
    """
    if model.similarity != "linear":
        return similarities(model, maps)
    if model.activation == "unit":
        return 4 - maps
    if model.activation in BOUNDED:
        return model.prototypes.shape[1] - maps
    return maps.amax(dim=(-2, -1), keepdim=True) - maps


def upscale(maps: Tensor, size: Sequence[int], interpolation: str = "cubic") -> Tensor:
    """Maps (P, h, w) at the image's size (P, H, W): `bilinear` or `cubic`, as Chen et al. do."""
    if interpolation not in INTERPOLATIONS:
        raise ProtoPFaithError(f"There is no interpolation {interpolation!r}; choose bilinear or cubic.")
    mode = INTERPOLATIONS[interpolation]
    return F.interpolate(maps[None], size=tuple(size), mode=mode, align_corners=False)[0]


def protopnet_maps(
    model: PrototypeNetwork, distance_maps: Tensor, size: Sequence[int], interpolation: str = "cubic"
) -> Tensor:
    """ProtoPNet's own explanation of one image: activations (P, H, W) on its pixels.

    Args:
        model: the network.
        distance_maps: (P, h, w).
        size: height and width of the image.
        interpolation: `bilinear` or `cubic`.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", 2, 1, 8)
    >>> protopnet_maps(model, torch.rand(2, 6, 6), (48, 48)).shape
    torch.Size([2, 48, 48])
    """
    check_arguments(protopnet_maps, locals())
    if not hasattr(model, "similarity") or not hasattr(model, "prototypes"):
        raise ProtoPFaithError(f"The model must be a network with prototypes, not {shown(model)}.")
    tensor(distance_maps, "Distance maps", "prototypes x height x width", 3)
    if not distance_maps.numel() or not distance_maps.is_floating_point():
        raise ProtoPFaithError("Distance maps must hold real numbers, at least one; give others.")
    if len(size) != 2:
        raise ProtoPFaithError(f"The size must be height and width of the image, not {shown(size)}.")
    check_pixels(int(size[1]), int(size[0]), "The image of the maps")
    return upscale(flip(model, distance_maps), size, interpolation)


def own_maps(model: Any, image: Tensor, distance_maps: Tensor, prototypes: Sequence[int]) -> Tensor:
    """A network's own explanation of an image: where its prototypes look if it says so itself, or else where
    they are nearest, as ProtoPNet has it; (prototypes, H, W).

    Args:
        model: the network.
        image: (C, H, W), normalized.
        distance_maps: (P, h, w), of all prototypes.
        prototypes: whose maps are wanted.
    """
    chosen = list(prototypes)
    if not hasattr(model, "occurrence_maps"):
        return protopnet_maps(model, distance_maps[chosen], image.shape[-2:])
    maps = model.occurrence_maps(image[None])[0, chosen]
    maps = maps / maps.amax((1, 2), keepdim=True).clamp_min(1e-12)
    return upscale(maps, image.shape[-2:], "bilinear")


def own_map_name(model: Any) -> str:
    """What such a map is called: as the network says, or else by what it is."""
    usual = "its occurrence map" if hasattr(model, "occurrence_maps") else "ProtoPNet's own map"
    return str(getattr(model, "own_map", usual))


def crop_box(activation: Tensor, percentile: float = 95.0) -> tuple[int, int, int, int]:
    """The smallest box (left, top, right, bottom) around the pixels of an (H, W) map above its percentile.

    Args:
        activation: the map.
        percentile: of its values.

    >>> activation = torch.zeros(10, 10)
    >>> activation[2:4, 5:8] = 1
    >>> crop_box(activation)
    (5, 2, 8, 4)
    """
    check_arguments(crop_box, locals())
    tensor(activation, "A map", "height x width", 2)
    percentile = finite_number(percentile, "The percentile", least=0, most=100)
    if not activation.numel() or not bool(activation.isfinite().all()):
        raise ProtoPFaithError("A map with NaN or infinity, or without a pixel, has no box; give another.")
    chosen = activation >= torch.quantile(activation.double().flatten(), percentile / 100)
    rows, columns = (torch.where(chosen.any(dim))[0] for dim in (1, 0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
