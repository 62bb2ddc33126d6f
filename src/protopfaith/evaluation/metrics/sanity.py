"""Sanity checks: explanations must depend on the weights, hold still under noise, and lie on the object."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import finite_number, seed_number
from protopfaith.correlation import spearman
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import Explained, ExplainerFunction, Options
from protopfaith.evaluation.explainers.common import check_subject, explained_by
from protopfaith.network import NO_CLASS, DistinctPrototypes, PatchNetwork, distinct_prototypes

NOISE = 0.05
DEAD = 0.01


def shuffled(model: PatchNetwork, seed: int = 0) -> PatchNetwork:
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
    explainer: ExplainerFunction,
    model: PatchNetwork,
    image: Tensor,
    prototypes: Sequence[int],
    options: Options,
    *,
    own: Explained | None = None,
    other: PatchNetwork | None = None,
    seed: int = 0,
) -> Tensor:
    """Rank correlation between the explanation and that of the network with shuffled weights, (outputs,).

    Near zero is right: an explanation that stays when the weights are gone does not explain them (Adebayo et
    al., 2018). `own` is the explanation and `other` the shuffled network, where they are known already.

    Args:
        explainer: one of `EXPLAINERS`
        model: the network
        image: normalized, C x H x W
        prototypes: whose distances are explained
        options: for the explainer
        own: the explanation, where it is known already
        other: the shuffled network, where it is there already
        seed: of the shuffle

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> from protopfaith.evaluation import EXPLAINERS, Options
    >>> from protopfaith.shapley import Players
    >>> options, image = Options(Players.windows((32, 32), 8)), torch.rand(3, 32, 32)
    >>> randomization(EXPLAINERS["protopnet"], model.eval(), image, [0, 1], options).shape
    torch.Size([2])
    """
    check_arguments(randomization, locals())
    prototypes = check_subject(model, image, prototypes, options)
    seed = seed_number(seed)
    own = own or explained_by(explainer, model, image, prototypes, options)
    without = explained_by(explainer, other or shuffled(model, seed), image, prototypes, options)
    return spearman(own.values(options.players), without.values(options.players))


def stability(
    explainer: ExplainerFunction,
    model: PatchNetwork,
    image: Tensor,
    prototypes: Sequence[int],
    options: Options,
    *,
    own: Explained | None = None,
    seed: int = 0,
    noise: float = NOISE,
) -> Tensor:
    """Rank correlation between explanations of the image and of the image with noise; near one is right.

    `noise` is the standard deviation as a share of the image's own. (outputs,)

    Args:
        explainer: one of `EXPLAINERS`
        model: the network
        image: normalized, C x H x W
        prototypes: whose distances are explained
        options: for the explainer
        own: the explanation, where it is known already
        seed: of the noise
        noise: its standard deviation, as a share of the image's own

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> from protopfaith.evaluation import EXPLAINERS, Options
    >>> from protopfaith.shapley import Players
    >>> options, image = Options(Players.windows((32, 32), 8)), torch.rand(3, 32, 32)
    >>> stability(EXPLAINERS["protopnet"], model.eval(), image, [0, 1], options).shape
    torch.Size([2])
    """
    check_arguments(stability, locals())
    prototypes = check_subject(model, image, prototypes, options)
    seed, noise = seed_number(seed), finite_number(noise, "The noise", least=0)
    generator = torch.Generator().manual_seed(seed)
    added = torch.randn(image.shape, generator=generator).to(image) * noise * image.std()
    own = own or explained_by(explainer, model, image, prototypes, options)
    noisy = explained_by(explainer, model, image + added, prototypes, options)
    return spearman(own.values(options.players), noisy.values(options.players))


@dataclass(frozen=True, eq=False)
class PrototypeHealth:
    """Which prototypes are duplicates of others, and which ones hardly tell images apart.

    Args:
        distinct: which prototypes are duplicates
        per_class: the number of prototypes of each class
        variation: standard deviation of each prototype's distance over images, as a share of its mean:
            (P,)
    """

    distinct: DistinctPrototypes
    per_class: tuple[int, ...]
    variation: Tensor

    def __repr__(self) -> str:
        counts = f"{self.distinct.distinct} of {self.distinct.total} distinct, {len(self.dead)} dead"
        return f"PrototypeHealth({counts}, {len(self.collapsed)} classes collapsed)"

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
    model: PatchNetwork, batches: Iterable[Tensor], tolerance: float | None = None
) -> PrototypeHealth:
    """Duplicates, and variation over normalized images (batches B x C x H x W on the network's device).

    `tolerance` is that of `protopfaith.network.distinct_prototypes`.

    Args:
        model: the network
        batches: normalized images, B x C x H x W each, on the network's device
        tolerance: that of `protopfaith.network.distinct_prototypes`

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> prototype_health(model.eval(), [torch.rand(4, 3, 32, 32)]).per_class
    (2, 2)
    """
    check_arguments(prototype_health, locals())
    found = [model.distances(batch).double().cpu() for batch in batches]
    if not found:
        raise ProtoPFaithError("The health of prototypes is seen on images; give at least one batch of them.")
    distances = torch.cat(found)
    if not bool(distances.isfinite().all()):
        raise ProtoPFaithError(
            "Distances of prototypes to these images are not finite; check the images and the weights."
        )
    distinct = distinct_prototypes(model, tolerance)
    variation = distances.std(0, correction=0) / distances.mean(0).clamp_min(1e-30)
    owners = model.prototype_classes.cpu()
    sizes = torch.bincount(owners[owners != NO_CLASS], minlength=len(model.class_names)).tolist()
    return PrototypeHealth(distinct, tuple(sizes), variation)
