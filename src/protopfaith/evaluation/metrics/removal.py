r"""AOPC: how fast the distance to a prototype rises when what an explainer calls important is removed.

For prototype j on its own source image $I$, whose share t/T of most important pixels is removed:

$$\mathrm{AOPC} = \frac{1}{n T} \sum_j \sum_{t=1}^T s_j(I^{(0)}) - s_j(I^{(t)}).$$

Negative, and large in size, is good. The paper divides the sum by C + K + T - 1 instead: `paper_aopc`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import finite_number, instance, tensor, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Players
from protopfaith.shapley.memory import Batches, fitting

STEPS = 50


def region_means(maps: Tensor, regions: Players) -> Tensor:
    """The mean of maps (..., H, W) over the pixels of every region: (..., n)."""
    return region_sums(maps, regions) / regions.sizes.to(maps.device)


def region_sums(maps: Tensor, regions: Players) -> Tensor:
    """The sum of maps (..., H, W) over the pixels of every region: (..., n)."""
    labels = _pixel_labels(regions).reshape(-1).to(maps.device)
    sums = maps.new_zeros(*maps.shape[:-2], len(regions))
    return sums.index_add_(-1, labels, maps.flatten(-2))


def removal_ranks(
    importance: Tensor, regions: Players | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """The place of every pixel in the order of removal, 0 for the first: (H, W) from a map (H, W).

    With `regions` whole regions go, those with the largest mean importance first; without, single pixels.
    Equal importance is no preference: `generator` draws the order then. Inside a region it is row by row.

    Args:
        importance: a map, H x W
        regions: whole regions go at once; None for single pixels
        generator: draws the order of equals

    >>> removal_ranks(torch.tensor([[0.0, 3.0], [1.0, 2.0]])).tolist()
    [[3, 0], [2, 1]]
    """
    check_arguments(removal_ranks, locals())
    instance(importance, Tensor, "A map", "a tensor of height x width")
    if importance.dim() != 2 or not bool(torch.isfinite(importance).all()):
        raise ProtoPFaithError(
            "A map with NaN or infinity, or one that is not height x width, cannot order pixels; fix the "
            "explainer that made it."
        )
    if regions is not None and regions.image_size != tuple(importance.shape):
        raise ProtoPFaithError(
            f"A map of {tuple(importance.shape)} has no regions that cover {regions.image_size}; make them "
            "of its size."
        )
    importance = importance.detach().double()
    values = importance.flatten() if regions is None else region_means(importance, regions)
    shuffled = torch.randperm(len(values), generator=generator).to(values.device)
    places = _inverse(shuffled[values[shuffled].argsort(descending=True, stable=True)])
    if regions is not None:
        labels = _pixel_labels(regions).reshape(-1).to(values.device)
        places = _inverse(places[labels].argsort(stable=True))
    return places.reshape(importance.shape)


def removed_counts(pixels: int, steps: int) -> Tensor:
    """How many pixels are gone after steps 0 ... T: equal shares for maps of any resolution, (T + 1,)."""
    if whole_number(steps, "The number of steps of a removal curve", most=1_000_000) < 1:
        raise ProtoPFaithError(f"A removal curve was asked with {steps} steps; give at least one.")
    return (torch.arange(steps + 1).double() * pixels / steps).round().long()


@torch.no_grad()
def removal_curves(
    function: Callable[[Tensor], Tensor],
    images: Tensor,
    ranks: Tensor,
    outputs: Tensor,
    baselines: Tensor,
    *,
    steps: int = STEPS,
    insertion: bool = False,
    batch_size: int | None = None,
    memory: int | None = None,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """One output of `function` per image along its removal: (n, T + 1), step 0 being the image untouched.

    All curves run together, in batches that fit into `memory`.

    Args:
        function: images (B, C, H, W) to numbers (B, P)
        images: (n, C, H, W), on the device where everything runs
        ranks: the order of removal, (n, H, W), see `removal_ranks`
        outputs: which output belongs to each image, (n,)
        baselines: what stands where pixels are gone, (n, C, H, W)
        insertion: start from the baseline and put the image's pixels back, most important first
        steps: T
        batch_size: images per forward pass; without it as many as `memory` allows
        memory: bytes that a batch may take
        autocast: a number format for the forward passes

    >>> image = torch.tensor([[[[4.0, 3.0], [2.0, 1.0]]]])
    >>> ranks = removal_ranks(image[0, 0])[None]
    >>> total = lambda images: images.sum((1, 2, 3))[:, None]
    >>> removal_curves(total, image, ranks, torch.tensor([0]), torch.zeros_like(image), steps=2).tolist()
    [[10.0, 3.0, 0.0]]
    """
    check_arguments(removal_curves, locals())
    tensor(images, "Images", "n x channels x height x width", 4)
    tensor(baselines, "Baselines", "n x channels x height x width", 4)
    tensor(ranks, "Orders of removal", "n x height x width", 3)
    tensor(outputs, "Outputs", "one number for each image", 1)
    if not len(images) == len(ranks) == len(outputs) == len(baselines) or not len(images):
        raise ProtoPFaithError(
            "Removal curves need as many images, orders, outputs and baselines, at least one, but got "
            f"{len(images)}, {len(ranks)}, {len(outputs)} and {len(baselines)}."
        )
    whole = not (outputs.is_floating_point() or outputs.dtype == torch.bool)
    if baselines.shape != images.shape or ranks.shape[1:] != images.shape[2:] or not whole:
        raise ProtoPFaithError(
            "Removal curves need baselines of the images' shape, an order of their pixels and outputs of a "
            f"whole type, but got {tuple(images.shape)}, {tuple(baselines.shape)}, {tuple(ranks.shape)} and "
            f"{outputs.dtype}."
        )
    lowest, highest = int(outputs.min()), int(outputs.max())
    device = images.device
    first, then = (baselines, images) if insertion else (images, baselines)
    ranks, outputs = ranks.to(device, torch.int32), outputs.to(device, torch.int64)
    counts = removed_counts(ranks[0].numel(), steps).to(device, torch.int32)

    def values(numbers: Tensor) -> Tensor:
        which, step = numbers // (steps + 1), numbers % (steps + 1)
        gone = ranks[which] < counts[step, None, None]
        with torch.autocast(device.type, dtype=autocast, enabled=autocast is not None):
            found = function(torch.where(gone[:, None], then[which], first[which]))
        instance(found, Tensor, "What the function of a curve returns", "a tensor of images x outputs")
        if found.dim() != 2 or not 0 <= lowest <= highest < found.shape[1]:
            raise ProtoPFaithError(
                f"The function returned shape {tuple(found.shape)}, but outputs from {lowest} to {highest} "
                "were asked for; it must return a row of outputs for each image."
            )
        return found.gather(1, outputs[which, None]).double()[:, 0]

    batches = Batches(batch_size or fitting(function, images[:1], memory, autocast))
    numbers = torch.arange(len(images) * (steps + 1), device=device)
    found = [value for _, value in batches(values, numbers)]
    return torch.cat(found).reshape(len(images), steps + 1).cpu()


def aopc(curves: Tensor, up_to: float = 1.0) -> Tensor:
    """Mean of s(0) - s(t) over steps t >= 1 that remove at most the share `up_to`: (n, T + 1) to (n,).

    Insertion curves fall instead of rising: `insertion_score` is negative for good explanations, too.

    Args:
        curves: of `removal_curves`, (n, T + 1)
        up_to: the share of pixels up to which steps count

    >>> aopc(torch.tensor([[1.0, 2.0, 4.0]])).tolist()
    [-2.0]
    """
    check_arguments(aopc, locals())
    _check_curves(curves)
    curves = curves if curves.is_floating_point() else curves.double()
    return (curves[:, :1] - curves[:, 1 : _last_step(curves, up_to) + 1]).mean(1)


def insertion_score(curves: Tensor, up_to: float = 1.0) -> Tensor:
    """Mean of s(t) - s(0) over the steps t >= 1 of insertion, (n,): negative and large is good.

    Args:
        curves: of `removal_curves(..., insertion=True)`, (n, T + 1)
        up_to: the share of pixels up to which steps count

    >>> insertion_score(torch.tensor([[4.0, 2.0, 1.0]])).tolist()
    [-2.5]
    """
    check_arguments(insertion_score, locals())
    return -aopc(curves, up_to)


def paper_aopc(curves: Tensor, classes: int, prototypes_per_class: float) -> float:
    r"""The paper's normalizer: $\frac{1}{C + K + T - 1} \sum_j \sum_t s_j(0) - s_j(t)$.

    It grows with the number of curves n and hardly falls with T: numbers compare only at equal n, C, K and T.

    Args:
        curves: of `removal_curves`, (n, T + 1)
        classes: C
        prototypes_per_class: K

    >>> paper_aopc(torch.tensor([[1.0, 2.0, 4.0]]), classes=2, prototypes_per_class=1)
    -1.0
    """
    check_arguments(paper_aopc, locals())
    _check_curves(curves)
    finite_number(classes, "The number of classes", above=0)
    finite_number(prototypes_per_class, "The number of prototypes per class", above=0)
    steps = curves.shape[1] - 1
    curves = curves if curves.is_floating_point() else curves.double()
    return float((curves[:, :1] - curves[:, 1:]).sum()) / (classes + prototypes_per_class + steps - 1)


def _check_curves(curves: Tensor) -> None:
    instance(curves, Tensor, "Curves", "a tensor")
    if curves.dim() != 2 or curves.shape[1] < 2:
        raise ProtoPFaithError(
            "Removal curves are images x (steps + 1), with at least one step, not of shape "
            f"{tuple(curves.shape)}."
        )


def _last_step(curves: Tensor, up_to: float) -> int:
    up_to = finite_number(up_to, "The share of pixels up to which steps count", most=1)
    steps = curves.shape[1] - 1
    last = int(steps * up_to + 1e-9)
    if not 1 <= last <= steps:
        raise ProtoPFaithError(
            f"A share of {up_to} covers none of the {steps} steps; give a share from {1 / steps:.3g} to 1, "
            "or more steps."
        )
    return last


def _inverse(order: Tensor) -> Tensor:
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=order.device)
    return places


def _pixel_labels(regions: Players) -> Tensor:
    if regions.labels.dim() != 2:
        raise ProtoPFaithError(
            "Maps are H x W, but these players take channels apart; make players of all channels."
        )
    return regions.labels
