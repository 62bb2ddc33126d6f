import math

import pytest
import torch
from torch.nn import functional

from protopfaith.training.losses import (
    CostWeights,
    cluster_cost,
    costs,
    diversity_cost,
    hidden_cost,
    individual_cost,
    l1_cost,
    separation_cost,
)

B, C, K, L = 7, 3, 2, 4
CLASSES = torch.arange(C).repeat_interleave(K)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return {
        "logits": torch.randn(B, C, generator=generator),
        "distances": torch.rand(B, C * K, generator=generator),
        "labels": torch.randint(C, (B,), generator=generator),
        "prototypes": torch.rand(C * K, L, generator=generator),
    }


def slow_costs(distances, labels):
    """Cluster and separation from their definition, image by image."""
    cluster, separation = [], []
    for image, label in enumerate(labels.tolist()):
        own = [float(distances[image, j]) for j in range(C * K) if CLASSES[j] == label]
        others = [float(distances[image, j]) for j in range(C * K) if CLASSES[j] != label]
        cluster.append(min(own))
        separation.append(min(others))
    return sum(cluster) / B, sum(separation) / B


def total(batch, **weights):
    return costs(
        batch["logits"],
        batch["distances"],
        batch["labels"],
        prototypes=batch["prototypes"],
        prototype_classes=CLASSES,
        weights=CostWeights(**weights),
    )


def test_cluster_and_separation_are_minima_averaged_over_the_batch(batch):
    cluster, separation = slow_costs(batch["distances"], batch["labels"])
    assert cluster_cost(batch["distances"], batch["labels"], CLASSES) == pytest.approx(cluster)
    assert separation_cost(batch["distances"], batch["labels"], CLASSES) == pytest.approx(separation)


def test_separation_is_subtracted(batch):
    cluster, separation = slow_costs(batch["distances"], batch["labels"])
    entropy = float(functional.cross_entropy(batch["logits"], batch["labels"]))
    result = total(batch, cluster=0.3, separation=0.7)
    assert float(result["loss"]) == pytest.approx(entropy + 0.3 * cluster - 0.7 * separation)
    assert float(result["cross_entropy"]) == pytest.approx(entropy)


def test_division_by_the_number_of_prototypes_is_a_choice(batch):
    plain, divided = total(batch), total(batch, per_prototype=True)
    entropy = plain["cross_entropy"]
    torch.testing.assert_close(divided["loss"] - entropy, (plain["loss"] - entropy) / (C * K))


def test_the_paper_s_weights_are_the_default():
    assert CostWeights().cluster == CostWeights().separation == 0.5
    assert not CostWeights().per_prototype
    assert CostWeights().label_smoothing == 0


def test_diversity_is_one_for_equal_prototypes_and_pushes_others_apart():
    assert diversity_cost(torch.ones(C * K, L), CLASSES) == 1
    near, far = torch.zeros(2, L), torch.zeros(2, L)
    near[1], far[1] = 0.1, 2.0
    classes = torch.zeros(2, dtype=torch.long)
    assert diversity_cost(far, classes) < diversity_cost(near, classes) < 1
    assert diversity_cost(torch.ones(2, L), torch.tensor([0, 1])) == 0  # other classes do not count


def test_diversity_counts_in_the_loss(batch):
    more = total(batch, diversity=2.0)["loss"] - total(batch)["loss"]
    torch.testing.assert_close(more, 2 * diversity_cost(batch["prototypes"], CLASSES))


def test_l1_leaves_weights_to_the_own_class_alone():
    weight = torch.full((C, C * K), -2.0)
    own = torch.nn.functional.one_hot(CLASSES, C).T.bool()
    assert l1_cost(weight, CLASSES) == 2 * (~own).sum()


def test_gradients_reach_only_the_nearest_prototype_of_the_class(batch):
    distances = batch["distances"].clone().requires_grad_()
    cluster_cost(distances, batch["labels"], CLASSES).backward()
    touched = distances.grad != 0
    assert touched.sum() == B
    for image, label in enumerate(batch["labels"].tolist()):
        assert CLASSES[touched[image]] == label


def test_individual_cost_asks_one_prototype_of_each_class_at_a_time(batch):
    distances, labels = batch["distances"], batch["labels"]
    slow = []
    for rank in range(K):
        asked = [rank, K + rank, 2 * K + rank]  # the rank-th prototype of each class
        for image, label in enumerate(labels.tolist()):
            scores = [float(-1.5 * K * distances[image, j]) for j in asked]
            slow.append(torch.tensor(scores).logsumexp(0) - scores[label])
    expected = torch.stack(slow).mean()
    torch.testing.assert_close(individual_cost(distances, labels, CLASSES), expected)
    more = total(batch, individual=2.0)["loss"] - total(batch)["loss"]
    torch.testing.assert_close(more, 2 * expected)


def test_an_idle_prototype_costs_only_individually():
    """One prototype near every image adds the same to all classes: only the individual cost sees it."""
    labels = torch.arange(C)
    distances = torch.full((C, C * K), 3.0)
    distances[labels, labels * K] = 0.0
    idle = distances.clone()
    distances[labels, labels * K + 1] = 0.0  # both prototypes of a class recognize it
    idle[:, 1::K] = 0.0  # the second is near everything
    assert individual_cost(idle, labels, CLASSES) > 10 * individual_cost(distances, labels, CLASSES)
    assert cluster_cost(idle, labels, CLASSES) == cluster_cost(distances, labels, CLASSES)


@pytest.mark.parametrize("balanced", [False, True])
def test_copies_are_asked_for_what_is_said_of_the_whole_images(batch, balanced):
    """Copy by copy; a copy counts as much as the image it is of, and whole images learn nothing."""
    weights = torch.tensor([0.5, 1.0, 3.0]) if balanced else None
    whole, labels = batch["logits"].clone().requires_grad_(), batch["labels"]
    hidden = torch.randn(4, C, generator=torch.Generator().manual_seed(1)).requires_grad_()
    entropies, counts = [], []
    for copy in range(4):
        answer, said = whole[copy].softmax(0).tolist(), hidden[copy].softmax(0).tolist()
        entropies.append(-sum(answer[c] * math.log(said[c]) for c in range(C)))
        counts.append(float(weights[labels[copy]]) if balanced else 1.0)
    expected = sum(w * e for w, e in zip(counts, entropies, strict=True)) / sum(counts)
    cost = hidden_cost(hidden, whole, labels, weights)
    assert cost.item() == pytest.approx(expected, rel=1e-5)
    cost.backward()
    assert whole.grad is None
    assert bool((hidden.grad.abs().sum(1) > 0).all())


def test_saying_the_same_of_copies_as_of_whole_images_costs_least(batch):
    whole, labels = batch["logits"], batch["labels"]
    same = whole[:3].clone().requires_grad_()
    hidden_cost(same, whole, labels).backward()
    torch.testing.assert_close(same.grad, torch.zeros(3, C), atol=1e-6, rtol=0)
