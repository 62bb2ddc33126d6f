import math

import pytest
import torch
from lightning.fabric.plugins import MixedPrecision
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.optim.lr_scheduler import CyclicLR

from protopfaith.training.recipe import Recipe, load_recipe, recipe_from_dict
from protopfaith.training.schedule import make_optimizer, make_scheduler, make_stages

RATE = 0.01


def parts():
    names = ("encoder", "features", "prototypes", "classifier", "head")
    return {name: [nn.Parameter(torch.zeros(1))] for name in names}


def rates(recipe: Recipe, stage_name: str, iterations: int, group: int = 0) -> list[float]:
    """The learning rate that every iteration of a stage uses."""
    stage = next(stage for stage in make_stages(recipe.schedule) if stage.name == stage_name)
    optimizer = make_optimizer(parts(), stage, recipe)
    scheduler = make_scheduler(optimizer, stage, recipe, iterations)
    used = []
    for _ in range(iterations):
        used.append(optimizer.param_groups[group]["lr"])
        optimizer.step()
        scheduler.step()
    return used


@pytest.fixture
def recipe():
    return recipe_from_dict({"optimization": {"learning_rate": RATE, "weight_decay": 0.1}})


def test_the_paper_s_stages():
    stages = make_stages(load_recipe("cub").schedule)
    assert [(stage.name, stage.epochs) for stage in stages[:3]] == [
        ("warmup", 10),
        ("joint", 5),
        ("classifier", 10),
    ]
    assert sum(stage.epochs for stage in stages) == 1000
    assert [stage.first_epoch for stage in stages[:4]] == [0, 10, 15, 25]
    rsna = make_stages(load_recipe("rsna_convnet").schedule)
    assert (rsna[0].name, rsna[0].epochs) == ("pretraining", 100)
    assert sum(stage.epochs for stage in rsna[1:]) == 100


def test_warmup_rises_linearly_from_a_tenth_to_a_fifth(recipe):
    used = rates(recipe, "warmup", 50)
    expected = [RATE * (0.1 + 0.1 * i / 49) for i in range(50)]
    assert used == pytest.approx(expected)


@pytest.mark.parametrize("stage", ["joint", "classifier"])
def test_two_triangles_between_a_fifth_and_the_whole_rate(recipe, stage):
    used = rates(recipe, stage, 40)
    # A triangle wave from its definition: up for a quarter of the stage, down for a quarter, twice.
    expected = [RATE * (0.2 + 0.8 * (1 - abs((i / 10) % 2 - 1))) for i in range(40)]
    assert used == pytest.approx(expected)
    reference = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=RATE)
    cyclic = CyclicLR(reference, RATE / 5, RATE, step_size_up=10)
    for rate in used:
        assert reference.param_groups[0]["lr"] == pytest.approx(rate)
        reference.step()
        cyclic.step()


@pytest.mark.parametrize(
    ("stage_name", "trained", "decayed"),
    [
        ("warmup", ["features", "prototypes"], ["features"]),
        ("joint", ["encoder", "features", "prototypes"], ["encoder", "features"]),
        ("classifier", ["classifier"], []),
    ],
)
def test_parts_and_weight_decay(recipe, stage_name, trained, decayed):
    stage = next(stage for stage in make_stages(recipe.schedule) if stage.name == stage_name)
    optimizer = make_optimizer(parts(), stage, recipe)
    assert isinstance(optimizer, torch.optim.AdamW)
    assert [group["part"] for group in optimizer.param_groups] == trained
    assert [group["part"] for group in optimizer.param_groups if group["weight_decay"] > 0] == decayed


@pytest.mark.parametrize(
    ("precision", "clip", "fused"),
    [("16-mixed", 5.0, False), ("16-mixed", None, True), ("bf16-mixed", 5.0, True), ("32-true", 5.0, True)],
)
def test_gradients_of_mixed_precision_can_be_clipped_on_a_gpu(precision, clip, fused):
    """Fabric unscales gradients before it clips them, which a fused optimizer does by itself, too late."""
    values = {"optimization": {"clip": clip}, "compute": {"precision": precision}}
    with FakeTensorMode():  # parameters on a GPU that need not be there
        on_gpu = {name: [nn.Parameter(torch.zeros(1, device="cuda"))] for name in parts()}
        recipe = recipe_from_dict(values)
        optimizer = make_optimizer(on_gpu, make_stages(recipe.schedule)[0], recipe)
    assert all(group["fused"] == fused for group in optimizer.param_groups)
    if precision == "16-mixed" and clip is not None:
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        MixedPrecision("16-mixed", "cuda", scaler).unscale_gradients(optimizer)


def test_multipliers_scale_the_rates_of_parts():
    values = {"learning_rate": RATE, "multipliers": {"encoder": 0.1, "prototypes": 3.0}}
    recipe = recipe_from_dict({"optimization": values})
    joint = [rates(recipe, "joint", 40, group) for group in range(3)]
    assert max(joint[0]) == pytest.approx(0.1 * RATE)
    assert max(joint[1]) == pytest.approx(RATE)
    assert max(joint[2]) == pytest.approx(3 * RATE)


def test_pretraining_has_its_own_rate():
    values = {"pretraining": {"epochs": 1, "learning_rate": 0.5, "rate": "constant"}}
    assert set(rates(recipe_from_dict({"schedule": values}), "pretraining", 5)) == {0.5}
    values["pretraining"]["rate"] = "one_cycle"
    used = rates(recipe_from_dict({"schedule": values}), "pretraining", 50)
    assert max(used) == pytest.approx(0.5, rel=0.01)
    assert used[0] < 0.1
    assert used[-1] < 0.01


@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("stage", ["pretraining", "warmup", "joint", "classifier"])
def test_very_short_stages(stage, iterations):
    recipe = recipe_from_dict({"schedule": {"pretraining": {"epochs": 1, "rate": "one_cycle"}}})
    assert all(math.isfinite(rate) and rate > 0 for rate in rates(recipe, stage, iterations))


@pytest.mark.parametrize(
    ("stage_name", "images", "iterations", "factor"),
    [
        ("classifier", 5_000, 100_000, 1),
        ("classifier", 5_000, 1_000, 1),
        ("classifier", 5_000, 250, 4),
        ("classifier", 5_000, 3, 10),
        ("classifier", None, 3, 1),
        ("joint", 5_000, 3, 1),
    ],
)
def test_few_iterations_have_a_higher_rate_for_f(stage_name, images, iterations, factor):
    values = {"optimization": {"learning_rate": RATE}, "schedule": {"images": images}}
    recipe = recipe_from_dict(values)
    stage = next(stage for stage in make_stages(recipe.schedule) if stage.name == stage_name)
    optimizer = make_optimizer(parts(), stage, recipe, iterations=iterations)
    assert optimizer.param_groups[-1]["lr"] == pytest.approx(factor * RATE)


def test_an_encoder_without_parameters_can_be_trained_with() -> None:
    recipe = load_recipe("birds")
    stage = next(one for one in make_stages(recipe.schedule) if one.name == "joint")
    optimizer = make_optimizer({**parts(), "encoder": []}, stage, recipe)
    assert sum(len(group["params"]) for group in optimizer.param_groups) > 0
