from __future__ import annotations

import signal
import subprocess
import sys

import pandas as pd
import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import Run, at_once, train_folds, train_grid
from protopfaith.training.at_once import check_at_once, last_error, train_at_once
from protopfaith.training.recipe import recipe_from_dict
from tests.training.test_search import SMALL


def test_folds_trained_at_once_are_those_trained_one_by_one(tmp_path) -> None:
    recipe = recipe_from_dict(SMALL)
    together = train_folds(recipe, tmp_path / "together", (0, 1), progress=False, at_once=2)
    apart = train_folds(recipe, tmp_path / "apart", (0, 1), progress=False)
    pd.testing.assert_frame_equal(together, apart, atol=1e-6)
    assert "ProtoPNet" in (tmp_path / "together" / "fold_0.log").read_text()
    again = train_folds(recipe, tmp_path / "together", (0, 1), progress=False, at_once=2, resume=True)
    pd.testing.assert_frame_equal(again, together)


def test_a_failure_leaves_the_others_alone(tmp_path) -> None:
    """A point whose images are too small for its encoder."""
    (tmp_path / "grid.yaml").write_text("recipe: birds\nsearch:\n  data.size: [[24, 24], [4, 4]]\n")
    changes = ["data.options={train: 40, validation: 16, test: 16}", "schedule.cycles=1"]
    changes += [f"schedule.{stage}.epochs=1" for stage in ("pretraining", "warmup", "joint", "classifier")]
    with pytest.raises(ProtoPFaithError, match=r"001 could not be trained .*too small"):
        train_grid(tmp_path / "grid.yaml", tmp_path / "runs", changes, progress=False, at_once=2)
    assert Run(tmp_path / "runs" / "000").is_finished()
    assert len(pd.read_csv(tmp_path / "runs" / "runs.csv")) == 1


def test_when_all_fail_the_first_is_told(tmp_path, monkeypatch) -> None:
    def fail(recipes, at_once, *, progress):
        return {folder: ProtoPFaithError(f"{folder.name} could not be trained.") for folder in recipes}

    monkeypatch.setattr("protopfaith.training.search.train_at_once", fail)
    with pytest.raises(ProtoPFaithError, match="2 runs could not be trained; the first: fold_0"):
        train_folds(recipe_from_dict(SMALL), tmp_path / "folds", (0, 1), progress=False, at_once=2)


def test_an_interruption_ends_all_and_another_call_goes_on(tmp_path, monkeypatch) -> None:
    recipe = recipe_from_dict(SMALL, ["schedule.pretraining.epochs=60"])  # seconds that it cannot end in
    monkeypatch.setattr(at_once, "LOOK_EVERY", 0.05)
    processes = []

    def interrupt(bar, trainings, running) -> None:
        if at_once.epochs_so_far(trainings[0].folder):
            processes.extend(training.process for training in running)
            raise KeyboardInterrupt

    monkeypatch.setattr(at_once, "_look", interrupt)
    with pytest.raises(KeyboardInterrupt):
        train_at_once({tmp_path / "run": recipe}, 2, progress=False)
    assert all(process.poll() is not None for process in processes)
    assert not Run(tmp_path / "run").is_finished()
    monkeypatch.undo()
    assert train_at_once({tmp_path / "run": recipe}, 2, progress=False) == {}
    assert Run(tmp_path / "run").is_finished()
    assert at_once._is_done(at_once.Training(recipe, tmp_path / "run"))
    changed = recipe_from_dict(recipe.to_dict(), ["seed=9"])  # what is started says that it cannot be
    assert not at_once._is_done(at_once.Training(changed, tmp_path / "run"))


def test_several_devices_and_odd_numbers_are_refused() -> None:
    with pytest.raises(ProtoPFaithError, match="share one device"):
        check_at_once(2, [recipe_from_dict({"compute": {"devices": 2}})])
    check_at_once(1, [recipe_from_dict({"compute": {"devices": 2}})])
    with pytest.raises(ProtoPFaithError, match="at once"):
        check_at_once(0, [])


def test_the_last_sentence_is_found(tmp_path) -> None:
    log = tmp_path / "a.log"
    log.write_text("Loading torch ...\nError: first.\nError: There is no such file; check it.\n")
    assert last_error(log) == "There is no such file; check it."
    log.write_text("Killed")
    assert last_error(log) is None


def test_a_process_that_does_not_end_is_killed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(at_once, "PATIENCE", 0.2)
    training = at_once.Training(recipe_from_dict(SMALL), tmp_path / "run")
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    training.process = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    training.process.stdout.readline()
    training.stop()
    assert training.process.returncode == -signal.SIGKILL
