import pandas as pd
import pytest
import yaml

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import Run, train_folds, train_grid
from protopfaith.training.recipe import recipe_from_dict

SMALL = {
    "data": {"size": [24, 24], "options": {"train": 40, "validation": 16, "test": 16}},
    "model": {"encoder": "small", "prototypes_per_class": 1, "prototype_channels": 4},
    "optimization": {"batch_size": 16},
    "schedule": {
        "cycles": 1,
        "pretraining": {"epochs": 1},
        "warmup": {"epochs": 1},
        "joint": {"epochs": 1},
        "classifier": {"epochs": 1},
    },
    "compute": {"accelerator": "cpu"},
}


def test_folds_train_apart_and_are_summed_up(tmp_path):
    recipe = recipe_from_dict(SMALL)
    table = train_folds(recipe, tmp_path / "folds", (0, 1), progress=False)
    assert table.fold.tolist() == [0, 1, "mean", "std"]
    tests = table.test_balanced_accuracy
    assert tests[2] == pytest.approx((tests[0] + tests[1]) / 2)
    assert tests[3] == pytest.approx(abs(tests[0] - tests[1]) / 2)
    saved = pd.read_csv(tmp_path / "folds" / "folds.csv")
    assert saved.test_balanced_accuracy.tolist() == pytest.approx(tests.tolist())
    first, second = (Run(tmp_path / "folds" / f"fold_{fold}") for fold in (0, 1))
    assert first.recipe().data.fold == 0
    assert second.recipe().data.fold == 1
    validation = [set(run.data().validation.paths) for run in (first, second)]
    assert not validation[0] & validation[1]
    assert "pretraining" in set(second.metrics().stage)  # its own, on its own training images
    with pytest.raises(ProtoPFaithError, match="is there already"):
        train_folds(recipe, tmp_path / "folds", (0,))


def test_a_grid_tries_every_point_and_resumes(tmp_path):
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(SMALL))
    grid = {
        "recipe": str(tmp_path / "recipe.yaml"),
        "search": {"optimization.clip": [None, 1.0], "model.prototypes_per_class": [1, 2]},
    }
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid))
    no_warmup = ["schedule.warmup.epochs=0"]
    table = train_grid(tmp_path / "grid.yaml", tmp_path / "runs", no_warmup, progress=False)
    assert len(table) == 4
    assert table.validation_balanced_accuracy.is_monotonic_decreasing
    points = {
        (run.recipe().optimization.clip, run.recipe().model.prototypes_per_class)
        for run in (Run(tmp_path / "runs" / name) for name in table.run)
    }
    assert points == {(None, 1), (None, 2), (1.0, 1), (1.0, 2)}
    assert not (set(Run(tmp_path / "runs" / "000").metrics().stage) & {"warmup"})
    assert not [name for name in table if "test" in name]
    saved = pd.read_csv(tmp_path / "runs" / "runs.csv", dtype={"run": str})
    assert saved.run.tolist() == table.run.tolist()

    before = (tmp_path / "runs" / "000" / "last.safetensors").stat().st_mtime_ns
    again = train_grid(tmp_path / "grid.yaml", tmp_path / "runs", no_warmup, resume=True, progress=False)
    pd.testing.assert_frame_equal(again, table)
    assert (tmp_path / "runs" / "000" / "last.safetensors").stat().st_mtime_ns == before
