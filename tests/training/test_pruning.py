import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import Run, prune_run, train
from protopfaith.training.recipe import recipe_from_dict


def test_named_prototypes_go_and_f_is_fitted_anew(trained, data, tmp_path):
    before = trained.model()
    report = prune_run(trained, tmp_path / "pruned", [1, 4], device="cpu", data=data, progress=False)
    after = report.run.model()
    kept = [0, 2, 3, 5]
    assert report.dropped == (1, 4)
    assert report.kept == len(after.prototypes) == 4
    assert torch.equal(after.prototypes, before.prototypes[kept])
    assert after.sources == [before.sources[index] for index in kept]
    assert torch.equal(after.prototype_classes, before.prototype_classes[kept])
    assert not torch.equal(after.classifier.weight, before.classifier.weight[:, kept])
    for name, tensor in after.encoder.state_dict().items():
        assert torch.equal(tensor, before.encoder.state_dict()[name])
    assert report.run.environment()["pruned_from"] == trained.folder.name
    assert report.run.environment()["dropped_prototypes"] == [1, 4]
    assert set(report.run.metrics().stage) == {"classifier"}
    assert report.validation[1] == report.run.result()["validation_balanced_accuracy"]
    assert report.table().row_count == 3
    assert not list(tmp_path.glob("*.partial"))


def test_duplicates_go_by_themselves(trained, recipe, data, tmp_path):
    with torch.no_grad():
        model = trained.model()
        model.prototypes[1] = model.prototypes[0]
    run = Run(trained.folder)
    run.model = lambda device="cpu": model  # type: ignore[method-assign]
    report = prune_run(run, tmp_path / "pruned", device="cpu", data=data, progress=False)
    assert report.dropped[0] == 1


def test_dropping_a_repeat_alone_changes_no_logit(trained, data, tmp_path):
    with torch.no_grad():
        model = trained.model()
        model.prototypes[1] = model.prototypes[0]
        model.classifier.weight[:, 1] *= 3
    run = Run(trained.folder)
    run.model = lambda device="cpu": model  # type: ignore[method-assign]
    still = recipe_from_dict(trained.recipe().to_dict(), ["optimization.multipliers.classifier=0"])
    run.recipe = lambda: still  # type: ignore[method-assign]
    report = prune_run(run, tmp_path / "pruned", [1], device="cpu", data=data, progress=False)
    x = torch.rand(3, *data.train.image(0).shape)
    with torch.no_grad():
        torch.testing.assert_close(report.run.model()(x), model(x), rtol=1e-4, atol=1e-4)
    assert report.validation[0] == report.validation[1]


def test_nothing_is_left_when_something_is_wrong(trained, data, tmp_path):
    for drop, words in (
        ([99], "indices from 0 to 5"),
        ([], "indices from 0 to 5"),
        ([0, 1], "no prototype for red"),
    ):
        with pytest.raises(ProtoPFaithError, match=words):
            prune_run(trained, tmp_path / "pruned", drop, device="cpu", data=data, progress=False)
        assert not (tmp_path / "pruned").exists()
    with pytest.raises(ProtoPFaithError, match="is there already"):
        prune_run(trained, trained.folder, [0], device="cpu", data=data)


def test_a_pruned_run_is_finished(trained, data, tmp_path):
    report = prune_run(trained, tmp_path / "pruned", [0], device="cpu", data=data, progress=False)
    with pytest.raises(ProtoPFaithError, match="made by pruning"):
        train(None, report.run.folder, resume=True, data=data)


def test_distinct_models_have_nothing_to_prune(recipe, data, tmp_path):
    distinct = recipe_from_dict(recipe.to_dict(), ["projection.distinct=true", "schedule.cycles=1"])
    run = train(distinct, tmp_path / "run", data=data, progress=False)
    with pytest.raises(ProtoPFaithError, match="No two prototypes"):
        prune_run(run, tmp_path / "pruned", device="cpu", data=data)
