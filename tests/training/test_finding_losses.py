"""The costs of findings, compared with loops over images and findings."""

from __future__ import annotations

import math

import pytest
import torch

from protopfaith.training.finding_losses import (
    cluster_and_separation,
    consistency_cost,
    finding_cross_entropy,
    finding_weights,
    occurrence_cost,
    random_affine,
    warp,
)

NAN = math.nan


@pytest.fixture
def batch():
    torch.manual_seed(0)
    logits = torch.randn(6, 3, requires_grad=True)
    labels = torch.tensor(
        [[1, 0, NAN], [0, 1, 1], [1, NAN, NAN], [0, 0, 1], [1, 1, 0], [NAN, NAN, NAN]], dtype=torch.float
    )
    return logits, labels


@pytest.mark.parametrize("balanced", [False, True])
def test_cross_entropy_is_the_mean_over_known_labels(batch, balanced: bool) -> None:
    logits, labels = batch[0].detach(), batch[1]
    weights = finding_weights(labels) if balanced else None
    total = count = 0.0
    for image in range(6):
        for finding in range(3):
            y = float(labels[image, finding])
            if math.isnan(y):
                continue
            p = 1 / (1 + math.exp(-float(logits[image, finding])))
            w = 1.0 if weights is None else float(weights[int(y), finding])
            total -= w * math.log(p if y else 1 - p)
            count += w
    assert float(finding_cross_entropy(logits, labels, weights)) == pytest.approx(total / count, rel=1e-5)


def test_presence_and_absence_count_alike(batch) -> None:
    _, labels = batch
    weights = finding_weights(labels)
    for finding in range(3):
        with_it, without = (labels[:, finding] == 1).sum(), (labels[:, finding] == 0).sum()
        assert float(with_it * weights[1, finding]) == pytest.approx(float(without * weights[0, finding]))


def test_missing_labels_do_not_change_gradients(batch) -> None:
    logits, labels = batch
    (gradient,) = torch.autograd.grad(finding_cross_entropy(logits, labels), logits)
    assert bool((gradient[labels.isnan()] == 0).all())
    assert bool((gradient[~labels.isnan()] != 0).all())
    other = logits.detach().clone()
    other[labels.isnan()] = 100.0
    other.requires_grad_()
    (again,) = torch.autograd.grad(finding_cross_entropy(other, labels), other)
    assert torch.equal(gradient, again)


def test_nothing_known_costs_nothing() -> None:
    logits = torch.randn(2, 3, requires_grad=True)
    cost = finding_cross_entropy(logits, torch.full((2, 3), NAN))
    assert cost.item() == 0
    assert bool((torch.autograd.grad(cost, logits)[0] == 0).all())


def test_cluster_and_separation_by_loops(batch) -> None:
    _, labels = batch
    owners = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    signs = torch.tensor([1.0, 1, -1, 1, -1, 1, -1, -1])
    distances = torch.rand(6, 8)
    near, far = [], []
    for image in range(6):
        for finding in range(3):
            y = float(labels[image, finding])
            if math.isnan(y):
                continue
            own = [j for j in range(8) if owners[j] == finding]
            near.append(min(float(distances[image, j]) for j in own if (signs[j] > 0) == bool(y)))
            far.append(min(float(distances[image, j]) for j in own if (signs[j] > 0) != bool(y)))
    cluster, separation = cluster_and_separation(distances, labels, owners, signs)
    assert float(cluster) == pytest.approx(sum(near) / len(near), rel=1e-5)
    assert float(separation) == pytest.approx(sum(far) / len(far), rel=1e-5)


def test_a_finding_without_prototypes_against_it_has_no_such_cost() -> None:
    distances = torch.tensor([[0.3]], requires_grad=True)
    cluster, separation = cluster_and_separation(
        distances, torch.tensor([[1.0]]), torch.tensor([0]), torch.tensor([1.0])
    )
    assert cluster.item() == pytest.approx(0.3)
    assert float(separation.detach()) == 0
    assert torch.isfinite(torch.autograd.grad(cluster - separation, distances)[0]).all()


def test_occurrence_cost_is_the_share_of_the_image_whatever_the_scale() -> None:
    maps = torch.zeros(1, 1, 4, 4)
    maps[..., :2, :2] = 0.3
    assert float(occurrence_cost(maps)) == pytest.approx(0.25)
    assert float(occurrence_cost(maps / 10)) == pytest.approx(0.25)


def test_maps_that_move_with_the_image_are_consistent() -> None:
    torch.manual_seed(0)
    theta = random_affine(4, torch.device("cpu"))
    x = torch.rand(4, 2, 16, 16)
    smooth = torch.nn.functional.avg_pool2d(x, 5, 1, 2)
    smooth = smooth / smooth.amax((2, 3), keepdim=True)
    moved = warp(smooth, theta)
    peaks = moved.amax((2, 3), keepdim=True)
    still = consistency_cost(smooth, smooth, theta)
    together = consistency_cost(smooth, moved / peaks, theta)
    assert float(together) < float(still) / 2
    identity = torch.eye(2, 3)[None].expand(4, 2, 3)
    assert float(consistency_cost(smooth, smooth, identity)) == pytest.approx(0, abs=1e-5)
