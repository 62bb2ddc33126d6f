import copy

import pytest
import torch
from lightning.fabric import Fabric

from protopfaith.network import ProtoPNet, prune
from protopfaith.training.losses import CostWeights, hidden_cost
from protopfaith.training.objectives import ClassifierObjective, Exact, PlainObjective, PrototypeObjective


@pytest.fixture
def model():
    torch.manual_seed(0)
    return ProtoPNet("small", 3, 2, 8).eval()


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, 3, 24, 24, generator=generator), torch.tensor([0, 1, 2, 0, 1])


def test_the_stage_of_f_sees_the_same_cross_entropy_and_trains_f_alone(model, batch):
    whole = PrototypeObjective(model, CostWeights())(*batch)
    objective = ClassifierObjective(model, CostWeights())
    part = objective(Exact(model.distances(batch[0]).detach()), batch[1])
    torch.testing.assert_close(part["loss"], whole["cross_entropy"])
    torch.testing.assert_close(part["logits"], whole["logits"])
    assert [name for name, _ in objective.named_parameters()] == ["classifier.weight"]


def test_l1_counts_in_the_stage_of_f(model, batch):
    distances = Exact(model.distances(batch[0]).detach())
    plain = ClassifierObjective(model, CostWeights())(distances, batch[1])["loss"]
    more = ClassifierObjective(model, CostWeights(l1=0.1))(distances, batch[1])["loss"]
    # at the start F has -0.5 to each of the two other classes for six prototypes
    torch.testing.assert_close(more - plain, torch.tensor(0.1 * 6 * 2 * 0.5))


def test_pruned_networks_need_no_equal_numbers_of_prototypes(model, batch):
    pruned = prune(model, [0, 1, 2, 4, 5])
    weights = CostWeights(individual=0.5, diversity=0.1)
    result = ClassifierObjective(pruned, weights)(Exact(pruned.distances(batch[0]).detach()), batch[1])
    torch.testing.assert_close(result["loss"], result["cross_entropy"])


def test_distances_are_not_rounded_by_mixed_precision(model):
    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    objective = fabric.setup(ClassifierObjective(model, CostWeights()))
    distances = torch.full((2, 6), 40.0) + torch.arange(12).reshape(2, 6) * 1e-3  # all alike in bfloat16
    result = objective(Exact(distances), torch.tensor([0, 1]))
    torch.testing.assert_close(result["logits"], model.logits(distances))


def test_plain_objective_pools_and_classifies(model, batch):
    head = torch.nn.Linear(model.encoder(batch[0]).shape[1], 3)
    result = PlainObjective(model.encoder, head)(*batch)
    features = model.encoder(batch[0]).flatten(2).mean(dim=2)
    torch.testing.assert_close(result["logits"], head(features))
    torch.testing.assert_close(result["loss"], torch.nn.functional.cross_entropy(head(features), batch[1]))


def test_a_companion_teaches_and_is_not_taught(model, batch):
    """Its cost is its own cross-entropy and T^2 times the divergence of softened predictions; only the first
    reaches its head, only the second the prototypes."""
    images, labels = batch
    head = torch.nn.Linear(model.encoder(images).shape[1], 3)
    without = PrototypeObjective(model, CostWeights())(images, labels)["loss"]
    result = PrototypeObjective(model, CostWeights(companion=0.7), head)(images, labels)
    plain = head(model.encoder(images).mean((2, 3)))
    teacher, student = (plain / 2).softmax(1), (model(images) / 2).softmax(1)
    divergence = (teacher * (teacher / student).log()).sum(1).mean()
    own = torch.nn.functional.cross_entropy(plain, labels)
    torch.testing.assert_close(result["loss"] - without, 0.7 * (own + 4 * divergence))

    (of_loss,) = torch.autograd.grad(result["loss"], head.weight, retain_graph=True)
    (of_own,) = torch.autograd.grad(0.7 * own, head.weight, retain_graph=True)
    torch.testing.assert_close(of_loss, of_own)
    (of_prototypes,) = torch.autograd.grad(result["loss"] - without, model.prototypes)
    assert of_prototypes.abs().sum() > 0


def with_copies(images):
    """Five images and copies of three of them."""
    return torch.cat([images, images[:3] * (torch.rand(3, 1, 24, 24) > 0.5)])


def both_objectives(model, hidden):
    torch.manual_seed(1)
    head = torch.nn.Linear(model.encoder(torch.zeros(1, 3, 24, 24)).shape[1], 3)
    scale, classes = torch.nn.Parameter(torch.tensor(0.3)), torch.tensor([0.5, 1.0, 3.0])
    weights = CostWeights(hidden=hidden, companion=2.0, individual=1.0, places=0.2, diversity=0.1)
    yield PlainObjective(model.encoder, head, 0.1, classes, hidden)
    yield PrototypeObjective(model, weights, head, classes, scale)


def test_copies_change_nothing_about_whole_images(model, batch):
    """Where they do not count, loss, gradients and running statistics have the same bits as without them;
    where they do, all but the loss itself."""
    images, labels = batch
    for kind in range(2):
        found = []
        for pixels, hidden in ((images, 0.7), (with_copies(images), 0.0), (with_copies(images), 0.7)):
            objective = list(both_objectives(copy.deepcopy(model).train(), hidden))[kind]
            result = objective(pixels, labels)
            result["loss"].backward()
            gradients = [p.grad for p in objective.parameters() if p.grad is not None]
            encoder = objective.encoder if kind == 0 else objective.model.encoder
            assert all(module.training for module in encoder.modules())
            found.append((result, gradients, list(encoder.buffers())))
        (plain, *of_plain), (idle, *of_idle), (taught, _, statistics) = found
        for name in plain:
            assert torch.equal(plain[name], idle[name])
            assert name == "loss" or torch.equal(plain[name], taught[name])
        for one, other in zip(of_plain, of_idle, strict=True):
            assert len(one) == len(other)
            assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
        assert all(torch.equal(a, b) for a, b in zip(of_plain[1], statistics, strict=True))
        assert taught["loss"].item() > plain["loss"].item()


def test_the_cost_of_copies_is_that_of_the_trained_network_on_them(model, batch):
    """In evaluation mode, as the network will be asked about them; with the companion's cost as the companion
    counts."""
    images, labels = batch
    both = with_copies(images)
    plain, prototypes = both_objectives(model, 0.7)
    classes, head = prototypes.class_weights, prototypes.head

    def pooled(pixels):
        return head(model.encoder(pixels).mean((2, 3)))

    own = hidden_cost(pooled(both[5:]), pooled(images), labels, classes)
    torch.testing.assert_close(plain(both, labels)["loss"] - plain(images, labels)["loss"], 0.7 * own)

    def said(pixels):
        return prototypes.log_scale.exp() * model(pixels)

    expected = hidden_cost(said(both[5:]), said(images), labels, classes) + 2 * own
    more = prototypes(both, labels)["loss"] - prototypes(images, labels)["loss"]
    torch.testing.assert_close(more, 0.7 * expected, rtol=1e-4, atol=1e-5)


def test_f_learns_from_distances_of_copies(model, batch):
    images, labels = batch
    both = with_copies(images)
    objective = ClassifierObjective(model, CostWeights(hidden=0.7))
    distances = model.distances(both).detach()
    whole, result = (objective(Exact(part), labels) for part in (distances[:5], distances))
    expected = hidden_cost(model(both[5:]), model(images), labels)
    torch.testing.assert_close(result["loss"] - whole["loss"], 0.7 * expected)
    for name in set(whole) - {"loss"}:
        assert torch.equal(result[name], whole[name])
