"""A run names folders; they are read only if the run is one's own, or if one says so."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import DataRecipe, ModelRecipe
from protopfaith.training.run import Run
from protopfaith.training.trust import TRUSTED, check_paths, is_own, new_mark, state_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROTOPFAITH_STATE", str(tmp_path / "state"))
    monkeypatch.delenv(TRUSTED, raising=False)
    return tmp_path


def _recipe(root: Path | str | None, groups: Path | str | None = None) -> Recipe:
    data = DataRecipe(
        name="folder", root=root and str(root), size=(8, 8), groups=None if groups is None else str(groups)
    )
    return Recipe(data=data, model=ModelRecipe(encoder="small"))


def test_a_run_of_ones_own_is_known(home: Path) -> None:
    recipe = _recipe(home / "images")
    mark = new_mark(recipe)
    assert is_own(recipe, json.loads(json.dumps(mark)))
    check_paths(home, recipe, mark)


def test_another_place_or_another_number_is_not_what_was_marked(home: Path) -> None:
    recipe = _recipe(home / "images")
    mark = new_mark(recipe)
    assert not is_own(_recipe("/etc"), mark)
    assert not is_own(_recipe(home / "images", groups="/etc/passwd"), mark)
    assert not is_own(recipe, mark | {"id": "0" * 32})
    assert not is_own(recipe, mark | {"mark": "0" * 64})
    assert not is_own(recipe, mark | {"mark": "ä"})
    assert not is_own(recipe, {"id": 3, "mark": None})


def test_another_persons_mark_counts_for_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = _recipe(home / "images")
    mark = new_mark(recipe)
    monkeypatch.setenv("PROTOPFAITH_STATE", str(home / "somebody-else"))
    assert not is_own(recipe, mark)
    new_mark(recipe)  # has a secret now, but another one
    assert not is_own(recipe, mark)
    with pytest.raises(ProtoPFaithError, match="--root"):
        check_paths(home, recipe, mark)


def test_the_secret_is_its_owners_alone_and_stays(home: Path) -> None:
    new_mark(_recipe(None))
    secret = state_folder() / "secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) & 0o077 == 0
    before = secret.read_text()
    new_mark(_recipe(None))
    assert secret.read_text() == before
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]


@pytest.mark.parametrize("content", ["", "abc", "zz" * 32, "00" * 31])
def test_a_damaged_secret_trusts_nobody(home: Path, content: str) -> None:
    recipe = _recipe(home / "images")
    mark = new_mark(recipe)
    (state_folder() / "secret").write_text(content)
    assert not is_own(recipe, mark)
    assert new_mark(recipe) == {}


def test_where_no_secret_can_be_kept_runs_have_no_mark(home: Path) -> None:
    (home / "state").write_text("a file where the folder should be")
    assert new_mark(_recipe(home / "images")) == {}


def test_the_images_that_a_stranger_names_are_not_read(home: Path) -> None:
    with pytest.raises(ProtoPFaithError, match=r"not made here.*--root"):
        check_paths(home, _recipe(home / "images"), {})
    check_paths(home, _recipe(home / "images"), {}, home / "mine")
    check_paths(home, _recipe(None), {})  # drawn birds lie nowhere


def test_folders_may_be_trusted_for_all_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUSTED, os.pathsep.join(["/nowhere", str(home / "shared")]))
    check_paths(home, _recipe(home / "shared" / "cub"), {})
    for elsewhere in (home / "shared" / ".." / "private", home / "sharedness", "/etc"):
        with pytest.raises(ProtoPFaithError, match="--root"):
            check_paths(home, _recipe(elsewhere), {})
    (home / "private").mkdir()
    (home / "shared").mkdir()
    (home / "shared" / "link").symlink_to(home / "private")
    with pytest.raises(ProtoPFaithError, match="--root"):
        check_paths(home, _recipe(home / "shared" / "link"), {})


def test_a_table_of_groups_is_a_place_as_well(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = _recipe(home / "images", groups=home / "private.csv")
    with pytest.raises(ProtoPFaithError, match=TRUSTED):
        check_paths(home, outside, {}, home / "images")
    check_paths(home, _recipe(home / "images", groups=home / "images" / "g.csv"), {}, home / "images")
    hidden = replace(outside, data=replace(outside.data, groups=None, options={"groups": "/etc/passwd"}))
    with pytest.raises(ProtoPFaithError, match=TRUSTED):
        check_paths(home, hidden, {}, home / "images")
    for word in ("names", "none"):
        check_paths(home, _recipe(home / "images", groups=word), {}, home / "images")
    monkeypatch.setenv(TRUSTED, str(home))
    check_paths(home, outside, {})


def test_marks_say_nothing_of_the_rest_of_the_recipe(home: Path) -> None:
    """Other batch sizes, or a longer training, are the user's business."""
    recipe = _recipe(home / "images")
    mark = new_mark(recipe)
    assert is_own(replace(recipe, seed=recipe.seed + 1), mark)


def _write(run: Path, recipe: Recipe, mark: dict[str, str]) -> Run:
    run.mkdir()
    recipe.save(run / "recipe.yaml")
    (run / "environment.json").write_text(json.dumps({"data_fingerprint": "", **mark}))
    return Run(run)


def test_a_cluster_is_told_where_the_images_of_ones_own_runs_lie(home: Path) -> None:
    recipe = _recipe(home / "images")
    own, strange = _write(home / "own", recipe, new_mark(recipe)), _write(home / "strange", recipe, {})
    assert own.trusted_root() == home / "images"
    assert strange.trusted_root() is None
    (home / "mine").mkdir()
    assert Run(strange.folder, home / "mine").trusted_root() == home / "mine"
    drawn = _recipe(None)
    assert _write(home / "drawn", drawn, new_mark(drawn)).trusted_root() is None
