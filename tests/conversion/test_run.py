"""A converted network is a run like any other: every command takes it."""

from __future__ import annotations

from pathlib import Path

import pytest

import protopfaith as pf
from protopfaith.conversion import convert
from protopfaith.errors import ProtoPFaithError
from tests.cli.conftest import Done, fails_with, protopfaith
from tests.conversion.conftest import Pushed


@pytest.fixture(scope="module")
def place(pushed: Pushed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a converted run, with its images, and one without them."""
    folder = tmp_path_factory.mktemp("converted")
    names = folder / "names.txt"
    names.write_text("azure\nlime\ncrimson\n")
    run(folder, "convert", str(pushed.path), "--out", "bare", "--classes", "names.txt")
    done = run(
        folder,
        "convert",
        str(pushed.path),
        "--out",
        "full",
        "--root",
        str(pushed.images),
        "--boxes",
        str(pushed.boxes),
    )
    for words in (
        "Encoder: resnet18",
        "Similarity: log",
        "Prototypes: 6 of 32",
        "6 by the image's number",
        "Checked on",
    ):
        assert words in done.stdout
    return folder


def run(folder: Path, *arguments: str) -> Done:
    done = protopfaith(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done


def test_predict(place: Path, pushed: Pushed) -> None:
    image = pushed.images / "test" / "red" / "0.png"
    assert run(place, "predict", "full", str(image)).stdout.split("\t")[1] in {"blue", "green", "red"}
    assert run(place, "predict", "bare", str(image)).stdout.split("\t")[1] in {"azure", "lime", "crimson"}


def test_explain_with_sources_and_without(place: Path, pushed: Pushed) -> None:
    image = str(pushed.images / "test" / "red" / "0.png")
    quick = ("--budget", "64", "--players", "32")
    run(place, "explain", "full", image, *quick, "--out", "why")
    assert list((place / "why").rglob("*.html"))
    run(place, "explain", "bare", image, *quick, "--no-sources", "--out", "why_bare")
    fails_with(protopfaith(place, "explain", "bare", image, *quick, "--out", "no"), "--no-sources", "--root")


def test_evaluate_and_prune_and_faithfulness(place: Path, pushed: Pushed) -> None:
    assert "Validation balanced accuracy: not measured" in run(place, "evaluate", "full").stdout
    run(
        place, "evaluate", "bare", "--root", str(pushed.images)
    )  # names of classes may differ, not their number
    run(place, "prune", "full", "--prototypes", "0", "--out", "pruned")
    assert len(pf.Run(place / "pruned").model().prototypes) == 5
    run(place, "evaluate", "pruned")
    few = ("--prototypes", "1", "--players", "32", "--steps", "5", "--budget", "128", "--truth-budget", "0")
    asked = ("--explainers", "ours", "--checked", "1", "--device", "cpu")
    run(place, "faithfulness", "full", "--out", "faith", *asked, *few)


def test_it_cannot_be_trained_on(place: Path) -> None:
    fails_with(protopfaith(place, "train", "full/recipe.yaml", "--out", "full", "--resume"), "converted")


def test_images_with_other_classes_are_refused(place: Path, pushed: Pushed, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "two" / name).mkdir(parents=True)
        for number in range(3):
            source = pushed.images / "train" / "red" / f"{number + 3 * (name == 'a')}.png"
            (tmp_path / "two" / name / f"{number}.png").write_bytes(source.read_bytes())
    with pytest.raises(ProtoPFaithError, match="has 3 classes, but the images"):
        convert(pushed.path, tmp_path / "run", root=tmp_path / "two")
    with pytest.raises(ProtoPFaithError, match="was converted without images and has 3 classes"):
        pf.Run(place / "bare", tmp_path / "two").data()


def test_names_must_be_as_many_as_classes(pushed: Pushed, tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="has 3 classes, but 2 names"):
        convert(pushed.path, tmp_path / "run", classes=["a", "b"])


def test_what_is_there_is_not_overwritten(pushed: Pushed, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    with pytest.raises(ProtoPFaithError, match="not overwritten"):
        convert(pushed.path, tmp_path / "run")
