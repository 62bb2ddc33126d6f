"""Who trains a family; and one that is in no file of the package, through every command."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import FAMILIES, PatchNetwork, ProtoPNet, ProtoTree, XProtoNet
from protopfaith.training import TRAINERS, Run, Trainer
from protopfaith.training.families.prototree import TreeTrainer
from protopfaith.training.families.xprotonet import XProtoNetTrainer
from protopfaith.training.family import trainer_named, trainer_of
from tests.cli.conftest import place, protopfaith  # noqa: F401

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "family.md"


def test_every_family_has_its_trainer() -> None:
    assert trainer_of(ProtoPNet) is Trainer
    assert trainer_of(ProtoTree) is TreeTrainer
    assert trainer_named("xprotonet") is trainer_of(XProtoNet) is XProtoNetTrainer


def test_a_class_made_from_a_family_is_trained_as_that_family() -> None:
    class Other(XProtoNet): ...

    assert trainer_of(Other) is XProtoNetTrainer


def test_a_family_without_a_trainer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stranger(PatchNetwork): ...

    def build_stranger() -> Stranger:
        raise AssertionError

    monkeypatch.setitem(FAMILIES, "stranger", Stranger)
    with pytest.raises(ProtoPFaithError, match=r'Nobody knows.*@TRAINERS.register\("stranger"\)'):
        trainer_named("stranger")
    monkeypatch.setitem(FAMILIES, "function", build_stranger)
    with pytest.raises(ProtoPFaithError, match="training needs a class"):
        trainer_named("function")


@pytest.fixture(scope="module")
def trained_run(place: Path) -> Iterator[Run]:  # noqa: F811
    """A run of the page's family, trained by the command line."""
    found = re.search(
        r'```python title="my_family.py"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert found is not None
    (place / "my_family.py").write_text(found[1], encoding="utf-8")
    options = ["model.family=nearest", "model.options={sharpness: 7.0}", "model.initialization=patches"]
    done = protopfaith(
        place, "--import", "my_family", "train", "tiny.yaml", "--root", "images", *options,
        "schedule.joint.epochs=6", "--out", "nearest",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "sharpness" in done.stdout + done.stderr  # the last stage by its own name
    yield Run(place / "nearest")
    for registry in (FAMILIES, TRAINERS):
        registry.pop("nearest", None)  # type: ignore[attr-defined]
    sys.modules.pop("my_family", None)


def test_it_is_trained_with_its_own_last_part(trained_run: Run) -> None:
    model = trained_run.model()
    assert type(model).__name__ == "Nearest"
    assert model.config["sharpness"] != 7.0
    assert all(source is not None for source in model.sources)
    assert trained_run.result()["validation_balanced_accuracy"] > 0.6


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "nearest", "--device", "cpu"],
        ["explain", "nearest", "images/red/0.png", "--players", "8", "--budget", "128"],
        ["prototypes", "nearest", "--players", "8", "--budget", "128"],
        ["faithfulness", "nearest", "--prototypes", "1", "--explainers", "ours,protopnet,random",
         "--steps", "5", "--players", "8", "--budget", "128", "--truth-budget", "0", "--checked", "1"],
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_every_command_takes_it(command: list[str], trained_run: Run) -> None:
    done = protopfaith(trained_run.folder.parent, "--import", "my_family", *command)
    assert done.returncode == 0, done.stderr


def test_it_says_how_it_is_pruned_and_what_it_takes(trained_run: Run) -> None:
    folder = trained_run.folder.parent
    done = protopfaith(
        folder, "--import", "my_family", "prune", "nearest", "--prototypes", "0", "--out", "less"
    )
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "no single prototypes can be dropped" in said
    assert "tree" not in said
    wrong = ["model.family=nearest", "model.options={bluntness: 1}", "--root", "images", "--out", "wrong"]
    done = protopfaith(folder, "--import", "my_family", "train", "tiny.yaml", *wrong)
    assert "'bluntness', which the family nearest does not take; it takes sharpness" in " ".join(
        done.stderr.split()
    )
