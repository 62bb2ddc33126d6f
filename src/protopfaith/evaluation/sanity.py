"""Sanity checks: explanations must depend on the weights, hold still under noise, and lie on the object."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.correlation import spearman
from protopfaith.evaluation.explainers import Explained, Explainer, Options
from protopfaith.network import DistinctPrototypes, ProtoPNet, distinct_prototypes

NOISE = 0.05
DEAD = 0.01


def shuffled(model: ProtoPNet, seed: int = 0) -> ProtoPNet:
    """A copy whose encoder and Z have their weights in random places, tensor by tensor; prototypes stay."""
    other = copy.deepcopy(model).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in (other.encoder, other.features):
            for parameter in part.parameters():
                order = torch.randperm(parameter.numel(), generator=generator).to(parameter.device)
                parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return other


def randomization(
    explainer: Explainer,
    model: ProtoPNet,
    image: Tensor,
    prototypes: Sequence[int],
    options: Options,
    *,
    own: Explained | None = None,
    other: ProtoPNet | None = None,
    seed: int = 0,
) -> Tensor:
    """Rank correlation between the explanation and that of the network with shuffled weights, (outputs,).

    Near zero is right: an explanation that stays when the weights are gone does not explain them (Adebayo et
    al., 2018). ``own`` is the explanation and ``other`` the shuffled network, where they are known already.
    """
    own = own or explainer(model, image, prototypes, options)
    without = explainer(other or shuffled(model, seed), image, prototypes, options)
    return spearman(own.values(options.players), without.values(options.players))


def stability(
    explainer: Explainer,
    model: ProtoPNet,
    image: Tensor,
    prototypes: Sequence[int],
    options: Options,
    *,
    own: Explained | None = None,
    seed: int = 0,
    noise: float = NOISE,
) -> Tensor:
    """Rank correlation between explanations of the image and of the image with noise; near one is right.

    ``noise`` is the standard deviation as a share of the image's own. (outputs,)
    """
    generator = torch.Generator().manual_seed(seed)
    added = torch.randn(image.shape, generator=generator).to(image) * noise * image.std()
    own = own or explainer(model, image, prototypes, options)
    noisy = explainer(model, image + added, prototypes, options)
    return spearman(own.values(options.players), noisy.values(options.players))


def share_inside(maps: Tensor, mask: Tensor) -> Tensor:
    """The share of the positive part of maps (outputs, H, W) that lies on ``mask`` (bool, H x W): (outputs,).

    NaN where a map has no positive part. Chance is the mask's share of the pixels.
    """
    warm = maps.clamp_min(0)
    total = warm.sum((-2, -1))
    return torch.where(total > 0, warm[:, mask].sum(-1) / total.clamp_min(1e-300), torch.nan)


def box_mask(boxes: Tensor, size: Sequence[int]) -> Tensor:
    """The pixels inside any of the boxes (n, 4: left, top, right, bottom): bool H x W."""
    mask = torch.zeros(tuple(size), dtype=torch.bool)
    for left, top, right, bottom in boxes.tolist():
        mask[math.floor(top) : math.ceil(bottom), math.floor(left) : math.ceil(right)] = True
    return mask


@dataclass(frozen=True, eq=False)
class PrototypeHealth:
    """Which prototypes are duplicates of others, and which ones hardly tell images apart."""

    distinct: DistinctPrototypes
    per_class: tuple[int, ...]
    """The number of prototypes of each class."""
    variation: Tensor
    """Standard deviation of each prototype's distance over images, as a share of its mean: (P,)."""

    @property
    def dead(self) -> tuple[int, ...]:
        """Prototypes whose distance hardly varies: their similarity is the same for any image."""
        return tuple(torch.where(self.variation < DEAD)[0].tolist())

    @property
    def collapsed(self) -> tuple[int, ...]:
        """Classes all of whose prototypes are one."""
        counts = zip(self.distinct.per_class, self.per_class, strict=True)
        return tuple(label for label, (distinct, count) in enumerate(counts) if distinct == 1 < count)


@torch.no_grad()
def prototype_health(
    model: ProtoPNet, batches: Iterable[Tensor], tolerance: float | None = None
) -> PrototypeHealth:
    """Duplicates, and variation over normalized images (batches B x C x H x W on the network's device).

    Prototypes are the same up to a squared distance of ``tolerance`` (1e-6 L by default: rounding).
    """
    distances = torch.cat([model.distances(batch).double().cpu() for batch in batches])
    tolerance = 1e-6 * model.prototypes.shape[1] if tolerance is None else tolerance
    distinct = distinct_prototypes(model, tolerance)
    variation = distances.std(0, correction=0) / distances.mean(0).clamp_min(1e-30)
    sizes = torch.bincount(model.prototype_classes.cpu(), minlength=len(model.class_names)).tolist()
    return PrototypeHealth(distinct, tuple(sizes), variation)
