"""The linear probe, and the way from it to the trained plain classifier."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression
from torch import nn

from protopfaith.training import Recipe, train
from protopfaith.training.certainty import balanced_interval
from protopfaith.training.images import TrainingImages
from protopfaith.training.launch import build_model, make_fabric
from protopfaith.training.probe import (
    blend,
    class_weights,
    fit_probe,
    measure_batch_norm,
    temper,
)
from protopfaith.training.recipe import recipe_from_dict
from protopfaith.training.schedule import LEAST_MOVED, Stage, make_optimizer


def groups(counts: list[int], channels: int = 6, apart: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Overlapping clouds of points, one for each class; one channel is constant."""
    generator = torch.Generator().manual_seed(sum(counts))
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    centers = apart * torch.randn(len(counts), channels, generator=torch.Generator().manual_seed(0))
    features = centers[labels] + torch.randn(len(labels), channels, generator=generator)
    return torch.cat([5 * features + 100, torch.full((len(labels), 1), 3.0)], dim=1), labels


@pytest.mark.parametrize("counts", [[60, 60, 60], [150, 10], [3, 2], [200, 20, 40, 5]])
def test_it_is_as_good_as_scikit_learns(counts) -> None:
    features, labels = groups(counts)
    judged, theirs = groups([30] * len(counts))
    probe = fit_probe(features, labels, len(counts), (judged, theirs))
    assert probe.weight.shape == (len(counts), 7)
    assert torch.isfinite(probe.weight).all()
    predictions = (judged @ probe.weight.T + probe.bias).argmax(1)
    recalls = [(predictions[theirs == c] == c).float().mean() for c in range(len(counts))]
    assert probe.accuracy == pytest.approx(float(torch.stack(recalls).mean()))
    scaled = (features - features.mean(0)) / features.std(0).clamp_min(1e-3)
    reference = LogisticRegression(class_weight="balanced", max_iter=500).fit(scaled, labels)
    score = reference.score((judged - features.mean(0)) / features.std(0).clamp_min(1e-3), theirs)
    assert probe.accuracy >= score - 0.02


@pytest.mark.parametrize("counts", [[20, 20], [2, 2], [1, 1]])
def test_without_validation_images_some_are_held_out(counts) -> None:
    features, labels = groups(counts, apart=5.0)
    probe = fit_probe(features, labels, 2)
    assert ((features @ probe.weight.T + probe.bias).argmax(1) == labels).float().mean() > 0.9


def test_a_channel_that_is_quiet_on_the_training_images_is_not_made_loud() -> None:
    """A dead channel that one image wakes a little told the two classes of a few images apart, and then
    outweighed all others on images that wake it more."""
    features, labels = groups([20, 20])
    features[3, -1] += 0.01
    probe = fit_probe(features, labels, 2, (features, labels))
    others = features.clone()
    others[:, -1] += 1.0  # a fifth of what the other channels vary by
    before, after = (x @ probe.weight.T + probe.bias for x in (features, others))
    assert float((after - before).abs().max()) < float(before.std())


def test_classes_count_alike() -> None:
    labels = torch.tensor([0] * 30 + [1] * 10)
    weights = class_weights(labels, 3)
    assert float(weights[labels].sum()) == pytest.approx(40)
    assert float(30 * weights[0]) == pytest.approx(float(10 * weights[1]))
    assert float(weights[2]) == 0


def test_a_blend_lies_between() -> None:
    start = {"w": torch.rand(3), "n": torch.tensor(2)}
    end = {"w": torch.rand(3), "n": torch.tensor(9)}
    for share in (0.0, 0.3, 1.0):
        found = blend(start, end, share)
        assert torch.allclose(found["w"], (1 - share) * start["w"] + share * end["w"])
        assert int(found["n"]) == 9


@pytest.fixture
def probing(recipe: Recipe, trained, tmp_path) -> Recipe:
    """The recipe with an encoder that knows something already."""
    path = tmp_path / "encoder.safetensors"
    save_file(trained.model().encoder.state_dict(), path)
    more = ["schedule.pretraining.probe=true", "costs.companion=1.0", "costs.balanced=true"]
    more += ["optimization.layer_decay=0.1", "model.activation=unit", "model.logit_scale=true"]
    return recipe_from_dict(recipe.to_dict(), [f"model.weights={path}", *more])


def test_the_plain_classifier_is_never_worse_than_the_probe(probing, data, tmp_path) -> None:
    """Not even where the rate is thousands of times too high."""
    wild = ["schedule.pretraining.learning_rate=100.0", "schedule.cycles=1"]
    run = train(recipe_from_dict(probing.to_dict(), wild), tmp_path / "run", data=data, progress=False)
    result = run.result()
    assert result["plain_classifier"] >= result["linear_probe"] > 0.5
    assert f"linear probe {result['linear_probe']:.3f} / plain classifier" in run.comparison()
    per_class = torch.bincount(data.validation.labels).tolist()
    low, high = balanced_interval(result["validation_balanced_accuracy"], per_class)
    assert f"(95% interval {low:.2f} to {high:.2f}: {len(data.validation)} images" in run.comparison()


@pytest.mark.parametrize("too_sure", [0.5, 30.0])
def test_a_tempered_head_decides_alike_and_is_as_sure_as_images_warrant(too_sure) -> None:
    features, labels = groups([30, 30, 30], apart=0.3)
    probe = fit_probe(features, labels, 3, (features, labels))
    head = nn.Linear(7, 3)
    with torch.no_grad():
        head.weight.copy_(too_sure * probe.weight)
        head.bias.copy_(too_sure * probe.bias)
        before = head(features)
    temper(head, before, labels)
    with torch.no_grad():
        after = head(features)
    assert torch.equal(before.argmax(1), after.argmax(1))
    loss = nn.functional.cross_entropy
    assert loss(after, labels) < loss(before, labels)
    assert loss(after, labels) < 1.02 * min(loss(after * factor, labels) for factor in (0.5, 0.8, 1.25, 2.0))


def test_an_encoder_without_weights_has_no_probe(recipe, data, tmp_path) -> None:
    changed = recipe_from_dict(recipe.to_dict(), ["schedule.pretraining.probe=true", "schedule.cycles=1"])
    run = train(changed, tmp_path / "run", data=data, progress=False)
    assert run.result()["linear_probe"] is None
    assert run.comparison().startswith("Validation balanced accuracy: plain classifier ")


@pytest.mark.parametrize("epochs", [1, 2, 3, 5, 6])
def test_it_resumes_wherever_it_stopped(probing, data, tmp_path, epochs, monkeypatch) -> None:
    whole = train(probing, tmp_path / "whole", data=data, progress=False)
    from protopfaith.training.saving import Saver

    finish, done = Saver.finish_epoch, []

    def stopping(self, *args) -> None:
        finish(self, *args)
        done.append(1)
        if len(done) == epochs:
            raise KeyboardInterrupt

    monkeypatch.setattr(Saver, "finish_epoch", stopping)
    with pytest.raises(KeyboardInterrupt):
        train(probing, tmp_path / "stopped", data=data, progress=False)
    monkeypatch.setattr(Saver, "finish_epoch", finish)
    resumed = train(None, tmp_path / "stopped", resume=True, data=data, progress=False)
    ours, theirs = (load_file(run.folder / "last.safetensors") for run in (whole, resumed))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert whole.result() == resumed.result()


def test_on_the_unit_sphere_prototypes_are_latent_vectors(probing, data, tmp_path) -> None:
    model = train(probing, tmp_path / "run", data=data, progress=False).model()
    assert torch.allclose(model.prototypes.norm(dim=1), torch.ones(len(model.prototypes)), atol=1e-5)
    for j, source in enumerate(model.sources):
        image = data.preprocessing(data.train.image(data.train.paths.index(source.image)))
        maps = model.distance_maps(image[None]).detach()
        assert float(maps.min()) >= 0
        assert float(maps.max()) <= 4 + 1e-5
        assert maps[0, j, source.row, source.column] < 4e-6
    fresh = build_model(probing, data)
    assert np.allclose(fresh.prototypes.detach().norm(dim=1), 1, atol=1e-5)


def test_between_two_networks_batch_norm_is_measured_anew(recipe, data) -> None:
    """Afterwards the encoder's batch norms have the statistics of the training images."""
    images = TrainingImages(make_fabric(recipe.compute), recipe, data)
    model = build_model(recipe, data)
    norm = next(module for module in model.encoder.modules() if isinstance(module, nn.BatchNorm2d))
    seen = []
    norm.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].detach()))
    measure_batch_norm(model, images)
    means = torch.stack([part.mean((0, 2, 3)) for part in seen]).mean(0)
    assert len(seen) == 3  # batches of twelve
    assert torch.allclose(norm.running_mean, means, atol=1e-5)
    assert norm.momentum == 0.1


def test_where_v_hardly_moved_prototypes_hardly_move_it(recipe, data) -> None:
    model = build_model(recipe, data)
    parts = {"encoder": list(model.encoder.parameters()), "features": list(model.features.parameters())}
    parts["prototypes"] = [model.prototypes]
    rates = {}
    for moved in (1.0, 0.4, 0.0):
        groups = make_optimizer(parts, Stage("joint", 1, cycle=1), recipe, moved=moved).param_groups
        rates[moved] = {group["part"]: group["lr"] for group in groups}
    assert rates[0.4]["encoder"] == pytest.approx(0.4 * rates[1.0]["encoder"])
    assert rates[0.0]["encoder"] == pytest.approx(LEAST_MOVED * rates[1.0]["encoder"])
    assert rates[0.0]["features"] == rates[1.0]["features"]
