"""The costs of a network that decides on several findings: each finding has its own, and labels that are not
known (not-a-number) take part in none.

For an image, a finding c with a known label y_c, and the distances s_j to its prototypes:

    cluster    = min of s_j over those for what is true     (one of them lies close: smaller is better)
    separation = min of s_j over those for what is not true (all of them lie far away: larger is better)
    loss       = binary cross-entropy + lambda_1 * cluster - lambda_2 * separation

averaged over all known labels, weighted such that presence and absence of each finding count alike if the
recipe wants so. Two more costs keep occurrence maps small, and moving with the image (Kim et al., 2021).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

ROTATION, SHIFT, SCALE = 20.0, 0.1, (0.85, 1.15)
"""Of the random affine maps: degrees, share of the image, factors."""


def finding_weights(labels: Tensor) -> Tensor:
    """How much absence and presence of every finding count, (2, C): both alike, however often they occur.

    >>> finding_weights(torch.tensor([[1.0], [0.0], [0.0], [0.0], [float("nan")]])).flatten().tolist()
    [0.6666666865348816, 2.0]
    """
    counts = torch.stack([(labels == 0).sum(0), (labels == 1).sum(0)]).float()
    return counts.sum(0) / (2 * counts).clamp_min(1)


def label_weights(labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """How much each label counts, (B, C): nothing where it is not known."""
    known = (~labels.isnan()).float()
    if weights is None:
        return known
    return known * torch.where(labels == 1, weights[1], weights[0])


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """Their mean; zero, with gradients of zero, where no weight is left."""
    return (weights * values).sum() / weights.sum().clamp_min(1e-12)


def finding_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Binary cross-entropy over all known labels; `weights` (2, C) are those of absence and presence."""
    labels = labels.to(logits.dtype)  # autocast rounds a module's inputs; these three values stay
    losses = functional.binary_cross_entropy_with_logits(logits, labels.nan_to_num(), reduction="none")
    return weighted_mean(losses, label_weights(labels, weights))


def nearest_distances(
    distances: Tensor, owners: Tensor, signs: Tensor, findings: int
) -> tuple[Tensor, Tensor]:
    """For each finding the distance to the nearest prototype for it and to the nearest against it, (B, C);
    infinite where there is none."""
    own = torch.arange(findings, device=owners.device)[:, None] == owners  # C x P
    chosen = (own & (signs > 0), own & (signs < 0))
    near, far = (distances[:, None].masked_fill(~which, torch.inf).amin(2) for which in chosen)
    return near, far


def cluster_and_separation(
    distances: Tensor, labels: Tensor, owners: Tensor, signs: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """How close the nearest prototype for the truth is, and the nearest against it: two scalars."""
    present, absent = nearest_distances(distances, owners, signs, labels.shape[1])
    there = labels == 1
    counted = label_weights(labels, weights)
    found = []
    for values in (torch.where(there, present, absent), torch.where(there, absent, present)):
        some = values.isfinite()  # a pruned finding may have prototypes of one kind alone
        found.append(weighted_mean(values.masked_fill(~some, 0), counted * some))
    return found[0], found[1]


def shapes(occurrence: Tensor) -> Tensor:
    """Occurrence maps (B, P, h, w) with a maximum of 1: how large they are has no meaning, as what is seen is
    scaled to length 1."""
    return occurrence / occurrence.amax((2, 3), keepdim=True).clamp_min(1e-12)


def occurrence_cost(occurrence: Tensor) -> Tensor:
    """The share of the image that occurrence maps (B, P, h, w) fill: their L1 norm, at a maximum of 1.

    >>> round(float(occurrence_cost(torch.tensor([[[[4.0, 0.0], [0.0, 0.0]]]]))), 3)
    0.25
    """
    return shapes(occurrence).mean()


def random_affine(count: int, device: torch.device) -> Tensor:
    """Maps of the plane, (count, 2, 3): rotated, scaled and shifted a little, from torch's generator."""
    angle = torch.deg2rad((2 * torch.rand(count, device=device) - 1) * ROTATION)
    factor = SCALE[0] + (SCALE[1] - SCALE[0]) * torch.rand(count, device=device)
    shift = (2 * torch.rand(count, 2, device=device) - 1) * 2 * SHIFT
    cosine, sine = factor * angle.cos(), factor * angle.sin()
    turn = torch.stack([torch.stack([cosine, -sine], 1), torch.stack([sine, cosine], 1)], 1)
    return torch.cat([turn, shift[:, :, None]], dim=2)


def warp(maps: Tensor, theta: Tensor) -> Tensor:
    """Maps or images (B, C, h, w) moved by `theta` (B, 2, 3); zero where nothing was. In float32: 16 bits
    would put points a pixel beside where they belong."""
    with torch.autocast(maps.device.type, enabled=False):
        grid = functional.affine_grid(theta.float(), list(maps.shape), align_corners=False)
        return functional.grid_sample(maps.float(), grid, align_corners=False)


def consistency_cost(occurrence: Tensor, moved: Tensor, theta: Tensor) -> Tensor:
    """How far the occurrence maps of moved images are from the moved maps of the images, (B, P, h, w): the
    mean difference where the moved image has something."""
    inside = warp(torch.ones_like(occurrence[:, :1]), theta)
    differences = (shapes(moved) - warp(shapes(occurrence), theta)).abs()
    return weighted_mean(differences, inside.expand_as(differences))
