"""Networks made from a network, whose explanations must relate to its own: what axioms are tested with."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from protopfaith.evaluation.explainers import Explainable, network_of
from protopfaith.evaluation.explainers.common import has_occurrence_maps, occurrence_maps
from protopfaith.network import SIMILARITIES, PatchNetwork, can_drop

logger = logging.getLogger("protopfaith")


class Masked:
    """Reads the pixels of `mask` (H x W) alone; the others are `fill` (C x H x W), whatever they hold."""

    def __init__(self, model: Explainable, mask: Tensor, fill: Tensor):
        self.model, self.network = model, network_of(model)
        self.mask = mask.to(fill)[None].expand_as(fill).contiguous()
        self.fill = fill * (1 - self.mask)

    def distances(self, x: Tensor) -> Tensor:
        return self.model.distances(x * self.mask + self.fill)

    def distance_maps(self, x: Tensor) -> Tensor:
        return self.model.distance_maps(x * self.mask + self.fill)

    def occurrence_maps(self, x: Tensor) -> Tensor:
        return occurrence_maps(self.model, x * self.mask + self.fill)


class Exchanged:
    """Mean over an image and the same with two regions exchanged, so that neither region matters more.

    `first` and `second` are the regions' pixels (indices into the flattened image), as many in each.
    """

    def __init__(self, model: Explainable, first: Tensor, second: Tensor, size: tuple[int, int]):
        self.model, self.network, self.size = model, network_of(model), size
        self.order = torch.arange(size[0] * size[1], device=first.device)
        self.order[first], self.order[second] = second, first

    def exchange(self, x: Tensor) -> Tensor:
        return x.flatten(2).index_select(2, self.order).unflatten(2, self.size)

    def distances(self, x: Tensor) -> Tensor:
        return (self.model.distances(x) + self.model.distances(self.exchange(x))) / 2

    def distance_maps(self, x: Tensor) -> Tensor:
        return (self.model.distance_maps(x) + self.model.distance_maps(self.exchange(x))) / 2

    def occurrence_maps(self, x: Tensor) -> Tensor:
        return (occurrence_maps(self.model, x) + occurrence_maps(self.model, self.exchange(x))) / 2


class Combined:
    """Linear combinations of distances, or of their similarities: `weights` is (outputs, P).

    Distance maps are combined by the same weights, as ProtoPNet's maps are for a class.
    """

    def __init__(self, model: Explainable, weights: Tensor, similarity: str | None = None):
        self.model, self.network = model, network_of(model)
        self.weights = weights.to(self.network.prototypes)
        self.similarity = (lambda s: s) if similarity is None else SIMILARITIES[similarity]

    def distances(self, x: Tensor) -> Tensor:
        return linear(self.similarity(self.model.distances(x)), self.weights)

    def distance_maps(self, x: Tensor) -> Tensor:
        return conv2d(self.similarity(self.model.distance_maps(x)), self.weights[:, :, None, None])

    def occurrence_maps(self, x: Tensor) -> Tensor:
        return conv2d(occurrence_maps(self.model, x), self.weights[:, :, None, None])


def narrowed(model: PatchNetwork, prototypes: Sequence[int]) -> PatchNetwork:
    """The network with some of its prototypes alone, in that order: the others cost time, and there may be
    thousands. The encoder is not copied. Of a network whose outputs are no sums, for its distances."""
    other = copy.deepcopy(model, {id(model.encoder): model.encoder})
    if can_drop(other):
        cast("Any", other).keep(list(prototypes))
        return other
    chosen = torch.tensor(list(prototypes), device=model.prototypes.device)
    other.prototypes = nn.Parameter(model.prototypes.detach()[chosen])
    other.prototype_classes = model.prototype_classes[chosen]
    other.sources = [model.sources[index] for index in prototypes]
    return other


def rewritten(model: PatchNetwork) -> PatchNetwork:
    """The same function, written otherwise: batch norms folded into convolutions where they can be, ReLU as a
    clamp, and every convolution as the sum of two with half its weights."""
    other = copy.deepcopy(model).eval()
    other.encoder = _rewritten(_folded(other.encoder))
    if not has_occurrence_maps(other):  # those stand beside Z, which stays as it is
        other.features = nn.Sequential(_rewritten(_folded(other.features)))
    return other


class Halves(nn.Module):
    """A convolution as the sum of two equal ones with half its weights."""

    def __init__(self, convolution: nn.Conv2d):
        super().__init__()
        with torch.no_grad():
            for parameter in convolution.parameters():
                parameter.mul_(0.5)
        self.first, self.second = convolution, copy.deepcopy(convolution)

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) + self.second(x)


class Clamp(nn.Module):
    """ReLU, written otherwise."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(min=0)


def _folded(module: nn.Module) -> nn.Module:
    from torch.fx.experimental.optimization import fuse

    try:
        return fuse(module)
    except Exception as error:
        logger.debug("Batch norms stay unfolded: %s", error)
        return module


def _rewritten(module: nn.Module) -> nn.Module:
    if isinstance(module, nn.Conv2d):
        return Halves(module)
    if isinstance(module, nn.ReLU):
        return Clamp()
    for name, child in module.named_children():
        setattr(module, name, _rewritten(child))
    return module
