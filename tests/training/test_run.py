from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import Run
from protopfaith.training.run import check_resumable, create_run, flatten, refuse_existing, versions


def test_a_folder_without_a_recipe_is_no_run(tmp_path) -> None:
    with pytest.raises(ProtoPFaithError, match="is no run folder"):
        Run(tmp_path)


def test_what_was_written_is_read(recipe, data, tmp_path) -> None:
    run = create_run(tmp_path / "run", recipe, data, note="mine")
    assert repr(run) == f"Run({str(tmp_path / 'run')!r})"
    assert run.recipe() == recipe
    assert run.environment()["note"] == "mine"
    assert run.environment()["images"] == {"train": 36, "validation": 12, "test": 12}
    assert not run.is_finished()
    with pytest.raises(ProtoPFaithError, match="has no model yet"):
        run.model()


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


def test_dotted_keys() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": {}}, "e": 2}) == {"a.b.c": 1, "a.d": {}, "e": 2}


def test_versions_name_what_computes() -> None:
    assert {"python", "torch", "numpy"} <= versions().keys()
