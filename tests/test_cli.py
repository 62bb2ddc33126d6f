"""The command line as a user runs it, on a small folder of images."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from safetensors import safe_open

from protopfaith import __version__
from protopfaith.cli import main
from protopfaith.data import DATASETS
from protopfaith.evaluation import EXPLAINERS
from protopfaith.evaluation.bench.settings import USUAL
from protopfaith.explanation.settings import USUAL_BUDGET
from protopfaith.network import ENCODERS
from protopfaith.shapley import ESTIMATORS
from protopfaith.training import Run

CLASSES = ("blue", "green", "red")
TINY = {
    "data": {"name": "folder", "size": [24, 24]},
    "model": {"encoder": "small", "prototypes_per_class": 2, "prototype_channels": 8},
    "optimization": {"batch_size": 12, "learning_rate": 0.01},
    "schedule": {
        "cycles": 1,
        "pretraining": {"epochs": 1},
        "warmup": {"epochs": 1},
        "joint": {"epochs": 1},
        "classifier": {"epochs": 2},
    },
    "compute": {"accelerator": "cpu", "resident": "always"},
}


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images of three classes and a recipe."""
    folder = tmp_path_factory.mktemp("user")
    random = np.random.default_rng(0)
    for label, name in enumerate(CLASSES):
        (folder / "images" / name).mkdir(parents=True)
        for number in range(12):
            pixels = random.integers(0, 90, (30, 40, 3), dtype=np.uint8)
            pixels[8:20, 10:25, 2 - label] = 240
            Image.fromarray(pixels).save(folder / "images" / name / f"{number}.png")
    (folder / "empty").mkdir()
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    return folder


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def protopfaith(place: Path, *arguments: str) -> Done:
    """The program in `place`, inside this process: importing torch anew for every call takes seconds."""
    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    code: int | str | None = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["protopfaith", *arguments])
        patch.setattr(sys, "path", list(sys.path))
        patch.setenv("COLUMNS", "200")
        patch.setenv("PROTOPFAITH_CACHE", str(place / "cache"))
        os.chdir(place)
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        finally:
            os.chdir(before)
    return Done(int(code or 0), out.getvalue(), err.getvalue())


def test_the_program_starts_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "protopfaith", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["protopfaith", __version__]


@pytest.fixture(scope="session")
def run(place: Path) -> Path:
    done = protopfaith(place, "train", "tiny.yaml", "--root", "images", "--out", "runs/tiny")
    assert done.returncode == 0, done.stderr
    assert "prototypes distinct" in done.stdout
    row = Run(place / "runs" / "tiny").result()["epoch"]  # rows count from zero, epochs for people from one
    assert f"Best epoch {row + 1}:" in done.stdout
    assert "classifier (F)   epoch    5" in done.stderr
    return place / "runs" / "tiny"


def fails_with(done: Done, *words: str) -> None:
    """One sentence for people: no traceback, exit code 1."""
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_train_leaves_a_complete_run(run: Path) -> None:
    for name in ("recipe.yaml", "environment.json", "metrics.csv", "model.safetensors", "last.safetensors"):
        assert (run / name).is_file()
    assert yaml.safe_load((run / "recipe.yaml").read_text())["data"]["root"] == "images"
    with safe_open(run / "model.safetensors", "pt") as file:
        assert file.get_tensor("prototypes").shape == (6, 8)


def test_evaluate_writes_numbers_and_a_picture(place: Path, run: Path) -> None:
    done = protopfaith(place, "evaluate", str(run), "--split", "train", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    values = json.loads((run / "evaluation" / "train.json").read_text())
    assert sum(map(sum, values["confusion"])) == values["images"]
    assert Image.open(run / "evaluation" / "train-confusion.png").size[0] > 300
    assert "balanced accuracy" in done.stdout
    assert "distinct" in done.stdout
    assert "within a class" in done.stdout
    assert values["distinct_prototypes"].keys() == set(CLASSES)


def test_a_run_finds_its_images_from_another_folder(place: Path, run: Path, tmp_path: Path) -> None:
    fails_with(protopfaith(tmp_path, "evaluate", str(run)), "images")
    done = protopfaith(tmp_path, "evaluate", str(run), "--root", str(place / "images"))
    assert done.returncode == 0, done.stderr


def test_predict_does_the_rest_when_one_file_is_broken(place: Path, run: Path) -> None:
    (place / "broken.png").write_bytes(b"not an image")
    some = [
        str(place / "images" / "red" / "0.png"),
        str(place / "broken.png"),
        str(place / "images" / "blue"),
    ]
    done = protopfaith(place, "predict", str(run), *some, "--csv", "out.csv")
    fails_with(done, "broken.png")
    lines = [line.split("\t") for line in done.stdout.splitlines()]  # long paths are not wrapped
    assert [line[0] for line in lines[:2]] == [some[0], f"{some[2]}/0.png"]
    assert all(len(line) == 3 for line in lines)
    rows = list(csv.DictReader((place / "out.csv").open()))
    assert len(rows) == 1 + 1 + 12
    assert rows[1]["error"]
    for row in rows[2:]:
        assert row["class"] in CLASSES
        assert sum(float(row[name]) for name in CLASSES) == pytest.approx(1, abs=1e-5)


def test_prune_makes_a_smaller_run(place: Path, run: Path) -> None:
    done = protopfaith(place, "prune", str(run), "--prototypes", "0", "--out", "runs/pruned")
    assert done.returncode == 0, done.stderr
    with safe_open(place / "runs" / "pruned" / "model.safetensors", "pt") as file:
        assert file.get_tensor("prototypes").shape == (5, 8)
    assert protopfaith(place, "evaluate", "runs/pruned").returncode == 0
    assert protopfaith(place, "prune", str(run), "--prototypes", "1").returncode == 0
    assert (place / "runs" / "tiny-pruned" / "model.safetensors").is_file()


def test_prune_where_the_images_have_moved(place: Path, run: Path, tmp_path: Path) -> None:
    """The new run knows where they are now."""
    done = protopfaith(
        tmp_path, "prune", str(run), "--prototypes", "0", "--out", "new", "--root", str(place / "images")
    )
    assert done.returncode == 0, done.stderr
    assert protopfaith(tmp_path, "evaluate", "new").returncode == 0


def test_resume_of_a_finished_run_changes_nothing(place: Path, run: Path) -> None:
    before = (run / "model.safetensors").read_bytes()
    done = protopfaith(place, "train", "--resume", "--out", "runs/tiny")
    assert done.returncode == 0, done.stderr
    assert (run / "model.safetensors").read_bytes() == before


def test_resume_takes_overrides_of_where_to_compute_and_refuses_others(place: Path, run: Path) -> None:
    done = protopfaith(place, "train", "compute.workers=0", "--resume", "--out", "runs/tiny")
    assert done.returncode == 0, done.stderr
    done = protopfaith(place, "train", "optimization.batch_size=3", "--resume", "--out", "runs/tiny")
    fails_with(done, "optimization.batch_size was 12, now 3")
    done = protopfaith(place, "train", "--resume", "--out", "runs/tiny", "--root", "elsewhere")
    fails_with(done, "no folder elsewhere")


def test_contact_sheet(place: Path) -> None:
    shown = (
        "data",
        "show",
        "folder",
        "--root",
        "images",
        "--size",
        "24",
        "--out",
        "sheet.png",
        "--columns",
        "4",
    )
    assert protopfaith(place, *shown).returncode == 0
    assert Image.open(place / "sheet.png").size[0] == 4 * 112


def test_recipes_and_help_name_everything(place: Path) -> None:
    assert "birds" in protopfaith(place, "recipes").stdout
    help_text = protopfaith(place, "--help").stdout
    for command in ("train", "evaluate", "predict", "prune", "demo", "data"):
        assert command in help_text
        assert protopfaith(place, command, "--help").returncode == 0


@pytest.mark.parametrize("command", ["explain", "prototypes"])
def test_help_names_the_usual_budgets(place: Path, command: str) -> None:
    words = " ".join(protopfaith(place, command, "--help").stdout.replace("│", " ").split())
    assert "Default: {cpu:,}, on a GPU {gpu:,};".format(**USUAL_BUDGET) in words


def test_help_names_what_judging_usually_takes(place: Path) -> None:
    words = " ".join(protopfaith(place, "faithfulness", "--help").stdout.replace("│", " ").split())
    for name, on_cpu in USUAL["cpu"].items():
        assert f"Default: {on_cpu:,}, on a GPU {USUAL['gpu'][name]:,}." in words


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (["data", "prepare"], DATASETS),
        (["data", "show"], DATASETS),
        (["explain"], ESTIMATORS),
        (["prototypes"], ESTIMATORS),
        (["faithfulness"], EXPLAINERS),
    ],
)
def test_help_lists_what_is_registered(place: Path, command: list[str], names: list[str]) -> None:
    words = " ".join(protopfaith(place, *command, "--help").stdout.replace("│", " ").split())
    assert ", ".join(sorted(names)) in words


EXTENSION = """
from torch import nn
from protopfaith.data import DATASETS, load_data
from protopfaith.network import ENCODERS

@ENCODERS.register("one_layer")
def one_layer(in_channels, published):
    return nn.Sequential(nn.Conv2d(in_channels, 4, 5, stride=4), nn.ReLU())

@DATASETS.register("few_birds")
def few_birds(*, root, size, seed, fold, skip_unreadable):
    return load_data("birds", size=32, seed=seed, train=16, validation=8, test=8)
"""


@pytest.fixture
def extension(tmp_path: Path) -> Iterator[Path]:
    """A folder with a module of the user's own; what it registers is forgotten afterwards."""
    (tmp_path / "my_extension.py").write_text(EXTENSION)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump({**TINY, "data": {"name": "few_birds"}}))
    yield tmp_path
    sys.modules.pop("my_extension", None)
    DATASETS.pop("few_birds", None)
    ENCODERS.pop("one_layer", None)


def test_a_module_of_the_user_s_own_reaches_every_command(extension: Path) -> None:
    train = ["train", "tiny.yaml", "model.encoder=one_layer", "--out", "run"]
    fails_with(protopfaith(extension, *train), "no data set named 'few_birds'")
    with_it = ["--import", "my_extension"]
    done = protopfaith(extension, *with_it, *train)
    assert done.returncode == 0, done.stderr
    assert protopfaith(extension, *with_it, "evaluate", "run").returncode == 0
    assert "few_birds" in protopfaith(extension, *with_it, "data", "show", "--help").stdout


def test_the_environment_may_name_the_module(extension: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOPFAITH_IMPORT", "my_extension")
    assert protopfaith(extension, "recipes").returncode == 0
    assert "few_birds" in DATASETS


def test_a_missing_import_inside_a_module_is_shown_to_its_author(tmp_path: Path) -> None:
    (tmp_path / "broken_extension.py").write_text("import no_such_package")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        protopfaith(tmp_path, "--import", "broken_extension", "recipes")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--import", "nowhere.to_be", "recipes"], ["no module 'nowhere.to_be'", "without its .py"]),
        (["train", "tiny.yaml", "--root", "nowhere", "--out", "runs/a"], ["nowhere"]),
        (["train", "brids"], ["brids", "birds"]),
        (["train", "birds", "model.prototypes_per_clas=3", "--out", "runs/b"], ["prototypes_per_class"]),
        (["train", "birds", "compute.accelerator=cuda", "--out", "runs/c"], ["GPU"]),
        (["train"], ["name a recipe"]),
        (["train", "folder", "--out", "runs/e"], ["--root"]),
        (["evaluate", "nowhere"], ["nowhere", "run folder"]),
        (["evaluate", "runs/tiny", "--split", "tets"], ["tets", "test"]),
        (["evaluate", "runs/tiny", "--device", "cuda:7"], ["cuda:7"]),
        (["prune", "runs/tiny", "--prototypes", "one", "--out", "runs/d"], ["'one'"]),
        (["data", "prepare", "cub", "--root", "images"], ["CUB_200_2011"]),
        (["data", "prepare", "folder", "--root", "a[red]b"], ["a[red]b"]),
        (["predict", "runs/tiny", "empty"], ["empty holds no images"]),
        *(
            (["explain", "runs/tiny", "images/red", *options], words)
            for options, words in (
                (["--players", "rings"], ["'rings'", "superpixels:60"]),
                (["--players", "0"], ["Windows of 0x0"]),
                (["--baseline", "blurr"], ["'blurr'", "blur"]),
                (["--baseline", "zero:3"], ["takes no numbers"]),
                (["--second-baseline", "color:1,2"], ["2 numbers", "3 channels"]),
                (["--estimator", "own"], ["'own'", "owen"]),
                (["--estimator", "exact", "--players", "2"], ["2^144"]),
                (["--budget", "10", "--players", "2"], ["budget of 10"]),
                (["--precision", "0"], ["precision is 0"]),
                (["--autocast", "bf16"], ["'bf16'", "bfloat16"]),
                (["--class", "reed"], ["'reed'", "red"]),
                (["--class", "red", "--versus", "red"], ["with itself"]),
                (["--root", "nowhere"], ["nowhere"]),
                (["--option", "shrinkage"], ["name and a value", "'shrinkage'"]),
                (["--option", "=3"], ["name and a value"]),
                (["--option", "shrinkag=false"], ["'shrinkag'", "allocation, shrinkage, surrogate"]),
                (["--option", "shrinkage=some"], ["'shrinkage'", "true or false", "'some'"]),
                (["--estimator", "dasp", "--option", "sizes=many"], ["'sizes'", "a whole number", "'many'"]),
                (["--estimator", "dasp", "--option", "sizes=0"], ["0 coalition sizes"]),
                (["--estimator", "kernel", "--option", "sizes=3"], ["no option 'sizes'"]),
                (["--estimator", "own", "--option", "nodes=3"], ["'own'", "owen"]),
                (["--option", "seed=3"], ["'seed'"]),
            )
        ),
        (["prototypes", "runs/tiny", "--option", "surogate=false"], ["'surogate'", "surrogate"]),
        (["prototypes", "runs/tiny", "--players", "rings"], ["'rings'"]),
    ],
)
def test_bad_input_is_one_sentence(place: Path, run: Path, arguments: list[str], words: list[str]) -> None:
    if "compute.accelerator=cuda" in arguments and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    before = sorted(run.rglob("*"))
    done = protopfaith(place, *arguments)
    fails_with(done, *words)
    assert not (place / "runs" / "a").exists()
    assert sorted(run.rglob("*")) == before  # neither reports nor maps on source images
    assert len(done.stderr.strip().splitlines()) <= 3


def test_explain_does_the_rest_when_one_file_is_broken(place: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    files = [str(place / "images" / "red" / "0.png"), str(tmp_path / "broken.png")]
    out = tmp_path / "out"
    done = protopfaith(
        place, "explain", str(run), *files, "--players", "8", "--budget", "80", "--out", str(out)
    )
    fails_with(done, "broken.png: ")
    assert done.stderr.count("Failed:") == 1
    assert len(list(out.glob("0-*/report.html"))) == 1
    assert "broken.png" in (out / "index.html").read_text()


def test_options_reach_the_estimator_and_sources_can_be_left_out(
    place: Path, run: Path, tmp_path: Path
) -> None:
    image = str(place / "images" / "red" / "0.png")
    plan = ["--players", "12", "--estimator", "dasp", "--option", "sizes=2", "--option", "batch_size=4"]
    done = protopfaith(place, "explain", str(run), image, "--no-sources", *plan, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (case,) = tmp_path.glob("0-*/explanation.json")
    found = json.loads(case.read_text())
    assert found["evaluations"] == 2 * 2 * 4  # passes: two for each of two sizes and four players
    assert all(one["source_side"] is None for one in found["evidence"])
    page = tmp_path / "prototypes"
    assert protopfaith(place, "prototypes", str(run), *plan, "--out", str(page)).returncode == 0
    listed = json.loads((page / "prototypes.json").read_text())["prototypes"]
    assert {one["evaluations"] for one in listed} == {2 * 2 * 4}


def test_the_way_out_that_errors_advise_exists(place: Path, run: Path, tmp_path: Path) -> None:
    """The images are gone, so there are no sources; what the error says helps."""
    image = str(place / "images" / "red" / "0.png")
    plan = ["--root", str(place / "empty"), "--players", "12", "--budget", "80", "--out", str(tmp_path)]
    assert protopfaith(place, "explain", str(run), image, *plan).returncode == 1
    done = protopfaith(place, "explain", str(run), image, *plan, "--no-sources")
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("0-*/report.html"))) == 1
