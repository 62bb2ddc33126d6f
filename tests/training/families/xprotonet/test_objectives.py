"""What is trained on findings, and what a recipe may ask for."""

from __future__ import annotations

import math

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import XProtoNet
from protopfaith.training import Run, load_recipe, train
from protopfaith.training.families.xprotonet.objectives import (
    ClassifierFindings,
    PlainFindings,
    PrototypeFindings,
)
from protopfaith.training.losses import CostWeights
from protopfaith.training.objectives import Exact

SMALL = ["data.size=[32,32]", "data.options={train: 48, validation: 32, test: 32}", "compute.accelerator=cpu"]
SHORT = ["schedule.cycles=1", "schedule.pretraining.epochs=1", "schedule.warmup.epochs=1",
         "schedule.joint.epochs=1", "schedule.classifier.epochs=1"]  # fmt: skip


@pytest.fixture
def model() -> XProtoNet:
    torch.manual_seed(0)
    return XProtoNet("small", ["edema", "mass"], 4, 8)


LABELS = torch.tensor([[1.0, 0.0], [0.0, math.nan], [math.nan, 1.0], [1.0, 1.0]])


def test_an_image_without_labels_moves_nothing(model: XProtoNet) -> None:
    """Batch norm aside, which sees all images."""
    objective = PrototypeFindings(model.eval(), CostWeights())
    x = torch.rand(4, 3, 32, 32)
    unknown = LABELS.clone()
    unknown[1] = math.nan
    parameters = [p for p in model.parameters() if p.requires_grad]

    def gradients(images, labels):
        return torch.autograd.grad(objective(images, labels)["loss"], parameters, allow_unused=True)

    changed = x.clone()
    changed[1] = torch.rand(3, 32, 32)
    for one, other in zip(gradients(x, unknown), gradients(changed, unknown), strict=True):
        if one is not None:
            assert torch.allclose(one, other, atol=1e-6)


def test_every_cost_takes_part(model: XProtoNet) -> None:
    x = torch.rand(4, 3, 32, 32)
    plain = CostWeights(cluster=0, separation=0)
    before = float(PrototypeFindings(model.eval(), plain)(x, LABELS)["loss"].detach())
    for name in ("cluster", "separation", "occurrence", "consistency", "diversity"):
        torch.manual_seed(1)
        weights = CostWeights(**{"cluster": 0, "separation": 0, name: 1.0})
        result = PrototypeFindings(model, weights)(x, LABELS)
        assert float(result["loss"].detach()) != pytest.approx(before)
        result["loss"].backward()


def test_the_stage_of_f_moves_f_alone(model: XProtoNet) -> None:
    result = ClassifierFindings(model, CostWeights(l1=0.1))(Exact(torch.rand(4, 8)), LABELS)
    result["loss"].backward()
    assert model.classifier.weight.grad is not None
    assert model.prototypes.grad is None
    own = model.prototype_classes == torch.arange(2)[:, None]
    assert bool(model.classifier.weight.grad[own].ne(0).all())


def test_the_plain_classifier_of_findings(model: XProtoNet) -> None:
    head = torch.nn.Linear(96, 2)
    result = PlainFindings(model.encoder, head)(torch.rand(4, 3, 32, 32), LABELS)
    assert result["logits"].shape == (4, 2)
    result["loss"].backward()
    assert head.weight.grad is not None


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("costs.individual=1", "costs.individual is made for one class"),
        ("costs.companion=1", "costs.companion is made for one class"),
        ("costs.label_smoothing=0.1", "costs.label_smoothing is made for one class"),
        ("schedule.pretraining.probe=true", "probe is made for one class"),
        ("model.prototypes_per_class=1", "at least two prototypes"),
        ("model.family=protopnet", "set model.family=xprotonet"),
    ],
)
def test_what_is_for_classes_is_refused(override: str, words: str, tmp_path) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        train(load_recipe("birds_multilabel", [*SMALL, *SHORT, override]), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_run_is_trained_resumed_and_read(tmp_path) -> None:
    recipe = load_recipe("birds_multilabel", [*SMALL, *SHORT])
    run = train(recipe, tmp_path / "run", progress=False)
    assert run.is_finished()
    assert run.outcome() == "several"
    model = run.model()
    assert isinstance(model, XProtoNet)
    assert all(source is not None for source in model.sources)
    again = train(None, tmp_path / "run", resume=True, progress=False)
    assert torch.equal(again.model().prototypes, model.prototypes)
    assert (tmp_path / "run" / "reference.json").is_file()
    assert Run(tmp_path / "run").result()["validation_balanced_accuracy"] >= 0
