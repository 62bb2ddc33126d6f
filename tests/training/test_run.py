from __future__ import annotations

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.training import Run
from protopfaith.training import run as run_module
from protopfaith.training.new_run import create_run
from protopfaith.training.recipe import load_recipe


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


def test_its_model_and_preprocessing_come_from_one_reading_of_the_header(trained, monkeypatch) -> None:
    read = []
    whole = run_module.read_metadata
    monkeypatch.setattr(run_module, "read_metadata", lambda path: read.append(path) or whole(path))
    Run(trained.folder).model()
    assert len(read) == 1


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (["data.options={size: 8}"], "size"),
        (["data.options={name: cub}"], "name"),
        (["data.name=folder", "data.root=.", "data.bits=8", "data.options={bits: 12}"], "bits"),
    ],
)
def test_an_option_that_is_a_key_of_its_own_is_refused(changes: list[str], key: str) -> None:
    with pytest.raises(ProtoPFaithError, match=rf"has '{key}', which is no option .* data\.{key} alone"):
        run_module.load_recipe_data(load_recipe("birds", changes))


@pytest.mark.parametrize("opened", [Run, lambda folder, root: Explainer(folder, root=root)])
def test_a_root_that_cannot_be_is_told_at_once(opened, trained, tmp_path) -> None:
    assert trained.recipe().data.name == "birds"
    for root in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(ProtoPFaithError, match=r"drawn, not read: leave out the folder"):
            opened(trained.folder, root)


def test_a_root_that_is_not_there_is_told_at_once(data, tmp_path) -> None:
    run = create_run(tmp_path / "run", load_recipe("folder"), data)
    with pytest.raises(ProtoPFaithError, match="There is no folder"):
        Run(run.folder, tmp_path / "nothing")
    assert Run(run.folder, tmp_path).root == tmp_path


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "image,class\nx.png,red\n", "epoch\n1\n"])
def test_metrics_of_another_kind_are_told(content, trained, tmp_path) -> None:
    assert list(trained.metrics()["epoch"]) == list(range(len(trained.metrics())))
    (tmp_path / "recipe.yaml").write_bytes(trained.recipe_path.read_bytes())
    (tmp_path / "metrics.csv").write_text(content)
    with pytest.raises(ProtoPFaithError, match=r"metrics\.csv cannot be read .* restore it"):
        Run(tmp_path).metrics()
