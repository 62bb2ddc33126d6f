"""Wrong paths and names are answered before anything heavy is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from protopfaith.cli.checks import check_budget, check_images, check_output_file, check_recipe
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Game, estimate
from protopfaith.tensorfile import write_tensors
from protopfaith.training import recipe_names
from protopfaith.writing import PAGE
from tests.cli.conftest import fails_with, protopfaith

TYPOS = [
    (["--help"], 0),
    (["--version"], 0),
    (["explain", "nowhere", "x.png"], 1),
    (["explain", "run", "nofile.png"], 1),
    (["explain", "run", "x.png", "--nonsense"], 2),
    (["explain", "run", "here.png", "--root", "nowhere"], 1),
    (["predict", "run", "nofile.png", "neither.png"], 1),
    (["evaluate", "nowhere"], 1),
    (["prototypes", "nowhere"], 1),
    (["faithfulness", "nowhere"], 1),
    (["prune", "nowhere"], 1),
    (["train", "nonsense"], 1),
    (["train", "missing.yaml"], 1),
    (["train", "folder", "--root", "nowhere"], 1),
    (["data", "prepare", "folder", "--root", "nowhere"], 1),
    (["train", "folder", "data.root=./nowhere"], 1),
    (["data", "prepare", "flock"], 1),
    (["evaluate", "run", "--split", "trian"], 1),
    (["evaluate", "run", "--data", "nowhere"], 1),
    (["explain", "run", "here.png", "--estimator", "owne"], 1),
    (["explain", "run", "here.png", "--baseline", "blurr:8"], 1),
    (["explain", "run", "here.png", "--baseline", "blur:eight"], 1),
    (["explain", "run", "here.png", "--device", "gpu"], 1),
    (["faithfulness", "run", "--explainers", "ours,dsap"], 1),
    (["convert", "here.png", "--out", "new", "--format", "onnx"], 1),
    (["train", "birds", "model.encoder=resnt50"], 1),
    (["train", "birds", "model.encoder=timm:resnt50"], 1),
    (["train", "birds", "model.family=protopnt"], 1),
    (["train", "birds", "model.activation=rellu"], 1),
    (["train", "birds", "data.name=brds"], 1),
    (["train", "birds", "modl.encoder=small"], 1),
    (["train", "birds", "seed=many"], 1),
    (["train", "birds", "--weights", "nofile.pth"], 1),
    (["train", "birds", "--groups", "nofile.csv"], 1),
    (["train", "birds", "--folds", "7"], 1),
    (["train", "birds", "--out", "run"], 1),
    (["train", "folder"], 1),
    (["train", "--grid", "cbu"], 1),
    (["train", "--resume", "--out", "nowhere"], 1),
    (["train", "birds", "--resume"], 1),
    (["train", "birds", "--resume", "--out", "nowhere"], 1),
    (["data", "show", "cub"], 1),
    (["convert", "here.png", "--out", "new", "--similarity", "lg"], 1),
    (["convert", "here.png", "--out", "new", "--classes", "nofile.txt"], 1),
    (["explain", "run", "here.png", "--players", "superpixel:9"], 1),
    (["explain", "run", "here.png", "--explain", "marg"], 1),
    (["explain", "run", "here.png", "--autocast", "float"], 1),
    (["explain", "run", "here.png", "--class", "finhc"], 1),
    (["explain", "run", "here.png", "--option", "sizes"], 1),
    (["faithfulness", "run", "--limit", "dsap=2"], 1),
    (["prune", "run", "--prototypes", "first"], 1),
    (["serve", "run", "--token", "short"], 1),
    (["demo", "--out", "here.png"], 1),
    (["explain", "run", "here.png", "--option", "shrinkge=true"], 1),
    (["explain", "run", "here.png", "--estimator", "dasp", "--option", "size=2"], 1),
    (["prototypes", "run", "--option", "shrinkge=true"], 1),
    (["explain", "run", "here.png", "--bulk", "run"], 1),
    (["explain", "run", "here.png"], 1),
    (["explain", "run", "notes"], 1),
    (["explain", "run", "photo.png", "--mask", "here.png"], 1),
    (["explain", "run", "photo.png", "--dicom"], 1),
    (["explain", "sized", "photo.png", "--budget", "4"], 1),
    (["explain", "sized", "photo.png", "--players", "32", "--budget", "65"], 1),
    (["predict", "run", "here.png", "notes/notes.txt"], 1),
    (["predict", "run", "notes"], 1),
    (["evaluate", "run", "--data", "notes"], 1),
    (["train", "cub", "--root", "notes"], 1),
    (["train", "birds", "compute.accelerator=gpus"], 1),
    (["data", "prepare", "cub", "--root", "notes"], 1),
    (["data", "prepare", "folder", "--root", "notes"], 1),
    (["data", "show", "rsna", "--root", "notes"], 1),
    (["train", "birds", "--out", "here.png/run"], 1),
    (["train", "birds_multilabel"], 1),  # its default folder is there
    (["explain", "run", "photo.png", "--out", "here.png/cases"], 1),
    (["evaluate", "run", "--data", "folder"], 1),
    (["explain", "--help"], 0),
    (["nonsense"], 2),
]
if sys.platform == "linux" and find_library("cuda") is None and not Path("/dev/kfd").exists():
    TYPOS += [
        (["explain", "run", "photo.png", "--device", "cuda"], 1),
        (["train", "birds", "compute.accelerator=cuda"], 1),
    ]
if Path("/proc/self").exists():
    TYPOS += [(["train", "birds", "--out", "/proc/run"], 1)]
SIZED = {"metadata": {"preprocessing": {"size": [96, 96]}}}
PROGRAM = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from protopfaith.cli import main

found = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["protopfaith", *arguments]
    code, out, err = None, io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    heavy = {"torch", "torchvision", "lightning", "matplotlib", "pandas"} & set(sys.modules)
    found.append([code, sorted(heavy), err.getvalue()])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """The code, the heavy modules and the message of each typo; all in one process, which has no torch."""
    folder = tmp_path_factory.mktemp("typos")
    (folder / "run").mkdir()
    (folder / "run" / "recipe.yaml").touch()
    (folder / "run" / "environment.json").write_text('{"classes": ["finch", "gull"]}')
    (folder / "runs" / "birds_multilabel").mkdir(parents=True)
    (folder / "runs" / "birds_multilabel" / "recipe.yaml").touch()
    (folder / "sized").mkdir()
    (folder / "sized" / "recipe.yaml").touch()
    write_tensors(folder / "sized" / "model.safetensors", "protopfaith", SIZED, {})
    (folder / "here.png").touch()
    Image.new("RGB", (8, 8)).save(folder / "photo.png")
    (folder / "notes").mkdir()
    (folder / "notes" / "notes.txt").write_text("no image")
    asked = json.dumps([arguments for arguments, _ in TYPOS])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, asked], cwd=folder, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", range(len(TYPOS)), ids=lambda number: " ".join(TYPOS[number][0]))
def test_a_typo_is_answered_without_torch(answers: list[list[Any]], number: int) -> None:
    code, heavy, message = answers[number]
    assert (code, heavy) == (TYPOS[number][1], []), message
    assert "Traceback" not in message


def test_every_recipe_passes(tmp_path: Path) -> None:
    for name in recipe_names():
        check_recipe(name)
    mine = tmp_path / "mine.yaml"
    mine.touch()
    check_recipe(str(mine))
    with pytest.raises(ProtoPFaithError, match="did you mean 'birds'"):
        check_recipe("brids")


def test_a_missing_image_stops_nothing_where_others_are_there(tmp_path: Path) -> None:
    there, gone = tmp_path / "there.png", tmp_path / "gone.png"
    there.touch()
    check_images([gone, there])
    with pytest.raises(ProtoPFaithError, match=r"no image at .*gone\.png"):
        check_images([gone])


@pytest.mark.parametrize("estimator", ["default", "adaptive_owen"])
@pytest.mark.parametrize(("players", "least"), [(None, 66), ("16", 66), ("32", 66), ("48", 16), ("96", 2)])
def test_a_budget_is_refused_early_only_where_it_is_too_small(
    tmp_path: Path, estimator: str, players: str | None, least: int
) -> None:
    write_tensors(tmp_path / "model.safetensors", "protopfaith", SIZED, {})
    game = Game(
        lambda images: images.sum((1, 2, 3))[:, None], torch.rand(3, 96, 96), players=int(players or 16)
    )
    estimate(game, method=estimator, budget=least)
    check_budget(tmp_path, estimator, players, least)
    check_budget(tmp_path, "permutation", players, 2)
    check_budget(tmp_path / "nowhere", estimator, players, 2)
    with pytest.raises(ProtoPFaithError, match=f"at least {least}"):
        check_budget(tmp_path, estimator, players, least - 1)


@pytest.mark.parametrize("content", ["file,label\n1.png,cat\n", "imag", "\0"])
def test_a_table_of_others_is_not_overwritten(tmp_path: Path, content: str) -> None:
    table, link, pipe = tmp_path / "labels.csv", tmp_path / "link.csv", tmp_path / "pipe.csv"
    link.symlink_to("labels.csv")
    os.mkfifo(pipe)
    table.write_text(content)
    for path in (table, link):
        with pytest.raises(
            ProtoPFaithError, match=rf"{path.name} is there already and no \.csv file of ours"
        ):
            check_output_file(path, ".csv", beginning=b"image,class,")
        check_output_file(path, ".csv")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for ours in ("image,class,cat\n", ""):
        table.write_text(ours)
        for path in (table, link, pipe, tmp_path / "new.csv"):
            check_output_file(path, ".csv", beginning=b"image,class,")
    os.close(reader)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="has no folder that even root cannot write to")
def test_a_file_whose_folder_takes_nothing_new_is_told_before_the_work() -> None:
    for path in ("/proc/out.csv", "/proc/deeper/out.csv"):
        with pytest.raises(
            ProtoPFaithError, match=r"^/proc.* cannot be written: in /proc nothing can be made"
        ):
            check_output_file(Path(path), ".csv")


def test_a_page_of_others_is_not_overwritten_and_one_of_ours_is(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(PAGE + b"'></head></html>")
    check_output_file(page, ".html", beginning=PAGE)
    page.write_text("<!DOCTYPE html>\n<html><body>My thesis</body></html>")
    with pytest.raises(ProtoPFaithError, match=r"page\.html is there already and no \.html file of ours"):
        check_output_file(page, ".html", beginning=PAGE)


@pytest.mark.parametrize("name", ["-", "a.png", "result"])
def test_a_name_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProtoPFaithError, match=r"is no name of a \.html file; give one that ends in \.html"):
        check_output_file(tmp_path / name, ".html")


def test_a_pipe_must_have_a_reader_before_the_work(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(ProtoPFaithError, match="is a pipe that nobody reads"):
        check_output_file(pipe, ".csv")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_output_file(pipe, ".csv")
    with pytest.raises(BlockingIOError):  # not at its end, which it would be without a writer
        os.read(reader, 1)
    os.close(reader)


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "{run}", "{run}"],
        ["predict", "{run}", "images/red", "{run}"],
        ["explain", "{run}", "{run}"],
        ["explain", "{run}", "{run}", "--bulk", "nowhere"],
        ["evaluate", "{run}", "--data", "{run}"],
        ["train", "tiny.yaml", "--root", "{run}", "--out", "nowhere"],
    ],
)
def test_the_folder_of_a_run_is_none_of_images(place: Path, run: Path, command: list[str]) -> None:
    done = protopfaith(place, *(word.format(run=run) for word in command))
    fails_with(done, "tiny is the folder of a run, whose pictures are its results")
    assert not (place / "nowhere").exists()


def test_one_mask_is_of_one_image(place: Path, run: Path, tmp_path: Path) -> None:
    Image.new("L", (40, 30), 255).save(tmp_path / "mask.png")
    done = protopfaith(place, "explain", str(run), "images/red", "--mask", str(tmp_path / "mask.png"))
    fails_with(done, "--mask marks the object in one image, and 12 are given")
    assert "Loading" not in done.stderr


def test_a_limit_is_told_before_the_run_is_loaded_and_blames_no_file(
    place: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PROTOPFAITH_MAX_PIXELS", "1e6"), ("PROTOPFAITH_MAX_SIDE", "8")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            done = protopfaith(place, "predict", str(run), "images/red/0.png")
        fails_with(done, name)
        assert "Loading" not in done.stderr
        assert "copy" not in done.stderr
