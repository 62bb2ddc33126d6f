import pytest
import torch
from lightning.fabric import Fabric

from protopfaith.network import ProtoPNet, prune
from protopfaith.training.losses import CostWeights
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
