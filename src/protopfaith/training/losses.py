"""The costs of a prototype network: cross-entropy + cluster - separation.

For an image with label y and the distances s_j = min over positions of ||p_j - z||^2:

    cluster    = min over prototypes of class y    of s_j    (one of its own lies close: smaller is better)
    separation = min over prototypes of the others of s_j    (all others lie far away: larger is better)
    loss       = cross-entropy + lambda_1 * cluster - lambda_2 * separation

all averaged over the batch. The paper prints a plus before the separation: a slip.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from protopfaith.training.cost_weights import CostWeights

TEMPERATURE = 2.0  # softens predictions, so that what is learned includes how classes resemble each other


def cluster_cost(distances: Tensor, labels: Tensor, prototype_classes: Tensor) -> Tensor:
    """Distance of each image to the nearest prototype of its own class, averaged over the batch.

    `distances` is B x P, `labels` B, `prototype_classes` P; the result a scalar.
    """
    own = prototype_classes == labels[:, None]
    return distances.masked_fill(~own, torch.inf).amin(dim=1).mean()


def separation_cost(distances: Tensor, labels: Tensor, prototype_classes: Tensor) -> Tensor:
    """Distance of each image to the nearest prototype of any other class, averaged over the batch."""
    own = prototype_classes == labels[:, None]
    return distances.masked_fill(own, torch.inf).amin(dim=1).mean()


def class_pairs(prototype_classes: Tensor) -> Tensor:
    """The numbers of all pairs of prototypes of one class, 2 x pairs. Counting them waits for the device.

    >>> class_pairs(torch.tensor([0, 0, 1, 1])).tolist()
    [[0, 2], [1, 3]]
    """
    pairs = (prototype_classes[:, None] == prototype_classes).triu(diagonal=1)
    return pairs.nonzero().T


def diversity_cost(prototypes: Tensor, prototype_classes: Tensor, pairs: Tensor | None = None) -> Tensor:
    """Mean of exp(-||p_i - p_j||^2) over pairs of prototypes of a class: 1 when all coincide, 0 far apart.

    `pairs` are those of `prototype_classes`, for callers who have them already."""
    first, second = class_pairs(prototype_classes) if pairs is None else pairs
    if len(first) == 0:
        return prototypes.sum() * 0
    return (prototypes[first] - prototypes[second]).square().sum(dim=1).neg().exp().mean()


def individual_cost(
    distances: Tensor,
    labels: Tensor,
    prototype_classes: Tensor,
    label_smoothing: float = 0.0,
    *,
    class_weights: Tensor | None = None,
    scale: Tensor | float = 1.0,
    classes: int | None = None,
) -> Tensor:
    """Mean over k of the cross-entropy when only the k-th prototype of each class is asked.

    Its logits are -1.5 K s: what the first F (1 to the own class, -0.5 to others) makes of K such distances;
    times `scale`, that of the network's logits. Without the number of `classes` it waits for the device.
    """
    classes = int(prototype_classes.max()) + 1 if classes is None else classes
    per_class = len(prototype_classes) // classes
    order = prototype_classes.argsort(stable=True)  # class by class
    by_rank = distances[:, order].reshape(len(distances), classes, per_class)
    logits = -1.5 * per_class * scale * by_rank  # B x C x K, as cross_entropy wants classes second
    return functional.cross_entropy(
        logits, labels[:, None].expand(-1, per_class), class_weights, label_smoothing=label_smoothing
    )


def companion_cost(
    logits: Tensor,
    plain: Tensor,
    labels: Tensor,
    label_smoothing: float = 0.0,
    class_weights: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of the `plain` classifier + T^2 KL(plain || logits) at temperature T (distillation,
    Hinton et al.); the second term does not change the plain classifier."""
    teacher = functional.log_softmax(plain.detach() / TEMPERATURE, dim=1)
    student = functional.log_softmax(logits / TEMPERATURE, dim=1)
    distilled = functional.kl_div(student, teacher, log_target=True, reduction="batchmean")
    own = functional.cross_entropy(plain, labels, class_weights, label_smoothing=label_smoothing)
    return own + TEMPERATURE**2 * distilled


def hidden_cost(hidden: Tensor, whole: Tensor, labels: Tensor, class_weights: Tensor | None = None) -> Tensor:
    """Cross-entropy between what a network says of whole images and what it says of copies of the first ones
    with hidden regions. Only the latter learns.

    Args:
        hidden: logits of the copies, (copies, C)
        whole: logits of the images, (B, C)
        labels: of the images, which decide how much each counts with `class_weights`
        class_weights: (C,)
    """
    # Labels take no part: of an image without its bird they say too much, and explanations ask how the
    # network's own answer came about. Where it knows the training images, both are nearly the same.
    answers = whole[: len(hidden)].detach().softmax(1)
    each = functional.cross_entropy(hidden, answers, reduction="none")
    if class_weights is None:
        return each.mean()
    weights = class_weights[labels[: len(hidden)]]
    return (weights * each).sum() / weights.sum()


def l1_cost(weight: Tensor, prototype_classes: Tensor) -> Tensor:
    """Sum of the absolute weights (C x P) that lead from a prototype to a class that is not its own."""
    own = torch.arange(len(weight), device=weight.device)[:, None] == prototype_classes
    return weight.masked_fill(own, 0).abs().sum()


def costs(
    logits: Tensor,
    distances: Tensor,
    labels: Tensor,
    *,
    prototypes: Tensor,
    prototype_classes: Tensor,
    weights: CostWeights,
    class_weights: Tensor | None = None,
    scale: Tensor | float = 1.0,
    pairs: Tensor | None = None,
) -> dict[str, Tensor]:
    """Every cost by name, and their weighted sum as `loss`. `class_weights` (C) are those of the
    cross-entropies, `scale` is the factor that `logits` have been multiplied by, `pairs` those of
    prototypes of one class, where they are known."""
    cluster = cluster_cost(distances, labels, prototype_classes)
    separation = separation_cost(distances, labels, prototype_classes)
    share = 1 / len(prototype_classes) if weights.per_prototype else 1.0
    smoothing = weights.label_smoothing
    cross_entropy = functional.cross_entropy(logits, labels, class_weights, label_smoothing=smoothing)
    loss = cross_entropy + share * (weights.cluster * cluster - weights.separation * separation)
    if weights.diversity:
        loss = loss + weights.diversity * diversity_cost(prototypes, prototype_classes, pairs)
    if weights.individual:
        individual = individual_cost(
            distances,
            labels,
            prototype_classes,
            smoothing,
            class_weights=class_weights,
            scale=scale,
            classes=logits.shape[1],
        )
        loss = loss + weights.individual * individual
    return {"loss": loss, "cross_entropy": cross_entropy, "cluster": cluster, "separation": separation}
