"""A run folder before its training."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training.new_run import check_resumable, create_run, versions
from protopfaith.writing import refuse_existing


def test_nothing_is_overwritten(recipe, data, tmp_path) -> None:
    create_run(tmp_path / "run", recipe, data)
    with pytest.raises(ProtoPFaithError, match="is there already"):
        create_run(tmp_path / "run", recipe, data)
    (tmp_path / "empty").mkdir()
    refuse_existing(tmp_path / "empty")


def test_only_the_same_recipe_and_images_go_on(recipe, data, tmp_path) -> None:
    run = create_run(tmp_path / "run", recipe, data)
    check_resumable(run, replace(recipe, compute=replace(recipe.compute, workers=0)), data)
    with pytest.raises(ProtoPFaithError, match="seed was 3, now 4"):
        check_resumable(run, replace(recipe, seed=4), data)
    with pytest.raises(ProtoPFaithError, match="images have changed"):
        check_resumable(run, recipe, replace(data, fingerprint="other"))


def test_versions_name_what_computes() -> None:
    assert {"python", "torch", "numpy"} <= versions().keys()


def test_a_file_where_curves_are_written_is_told_before_training(recipe, data, tmp_path) -> None:
    run = create_run(tmp_path / "run", recipe, data)
    (run.folder / "tensorboard").touch()
    with pytest.raises(ProtoPFaithError, match="tensorboard is a file, where a folder is expected"):
        check_resumable(run, recipe, data)
