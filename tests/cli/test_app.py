"""The program: its version, its help, modules of the user's own, and how it fails."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import yaml
from PIL import Image
from rich.markup import escape
from rich.table import Table

from protopfaith import __version__
from protopfaith.cli.app import ORDER, Lines, PlainConsole, next_command, same_command
from protopfaith.data import DATASETS
from protopfaith.evaluation import EXPLAINERS
from protopfaith.evaluation.bench.settings import USUAL
from protopfaith.explanation.settings import USUAL_BUDGET, USUAL_PRECISION, USUAL_SOURCE_BUDGET
from protopfaith.network import ENCODERS
from protopfaith.shapley import ESTIMATORS
from tests.cli.conftest import TINY, fails_with, protopfaith

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


def test_the_program_starts_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "protopfaith", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["protopfaith", __version__]


def test_recipes_and_help_name_everything(place: Path) -> None:
    assert "birds" in protopfaith(place, "recipes").stdout
    help_text = protopfaith(place, "--help").stdout
    for command in ORDER:
        assert command in help_text
        assert protopfaith(place, command, "--help").returncode == 0


@pytest.mark.parametrize("command", ["explain", "prototypes"])
def test_help_names_the_usual_budgets(place: Path, command: str) -> None:
    words = " ".join(protopfaith(place, command, "--help").stdout.replace("│", " ").split())
    assert "Default: {cpu:,}, on a GPU {gpu:,} (".format(**USUAL_BUDGET) in words
    assert "(a source image: {cpu:,}, on a GPU {gpu:,}),".format(**USUAL_SOURCE_BUDGET) in words
    assert f"where a map is precise to {USUAL_PRECISION} before" in words


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
    assert "--import my_extension evaluate run" in done.stdout
    assert protopfaith(extension, *with_it, "evaluate", "run").returncode == 0
    assert "few_birds" in protopfaith(extension, *with_it, "data", "show", "--help").stdout


def test_commands_to_type_are_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/anywhere/protopfaith/__main__.py", "explain", "my run"])
    monkeypatch.delenv("PROTOPFAITH_IMPORT", raising=False)
    assert same_command() == "python -m protopfaith explain 'my run'"
    assert next_command("serve", Path("my run")) == "python -m protopfaith serve 'my run'"


def test_the_environment_may_name_the_module(extension: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTOPFAITH_IMPORT", "my_extension")
    assert protopfaith(extension, "recipes").returncode == 0
    assert "few_birds" in DATASETS


def test_a_missing_import_inside_a_module_is_shown_to_its_author(tmp_path: Path) -> None:
    (tmp_path / "broken_extension.py").write_text("import no_such_package")
    done = protopfaith(tmp_path, "--import", "broken_extension", "recipes")
    assert done.returncode == 1
    assert "'broken_extension' imports 'no_such_package', which is not installed" in done.stderr


def test_where_a_module_of_the_user_s_fails_is_in_a_log_for_its_author(tmp_path: Path) -> None:
    (tmp_path / "failing_extension.py").write_text("1 / 0")
    done = protopfaith(tmp_path, "--import", "failing_extension", "recipes")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "failing_extension.py" in (tmp_path / "protopfaith-error.log").read_text()


@pytest.mark.parametrize("text", ["import sys; sys.exit(0)", "raise GeneratorExit", "def"])
def test_a_module_that_ends_or_is_no_python_is_told_as_its_author_s(tmp_path: Path, text: str) -> None:
    name = f"module_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text)
    done = protopfaith(tmp_path, "--import", name, "recipes")
    fails_with(done, f"The module '{name}' fails while it is imported (")
    assert "report it" not in done.stderr


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
                (["--players", "0"], ["from 1 to 100,000, not 0"]),
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


def test_help_is_in_the_order_of_work(place: Path) -> None:
    text = protopfaith(place, "--help").stdout
    listed = [line.split()[1] for line in text.splitlines() if line.startswith("│ ") and line[2] != " "]
    assert [name for name in listed if name in ORDER] == list(ORDER)


@pytest.mark.parametrize(
    ("module", "name", "arguments", "words"),
    [
        ("explanation", "explain_files", ["explain", "{run}", "x.png"], "go on with the rest: "),
        ("explanation", "explain_prototypes", ["prototypes", "{run}"], "go on with the rest: "),
        ("evaluation", "faithfulness", ["faithfulness", "{run}"], "is kept; go on with: "),
        ("training", "train", ["train", "--resume", "--out", "{run}"], "train --resume --out {run}"),
        ("training", "train", ["train", "birds", "--out", "new"], "Nothing is kept yet"),
        ("training", "train_folds", ["train", "birds", "--folds", "all"], "--folds all --resume"),
    ],
)
def test_an_interruption_says_what_is_kept_and_how_to_go_on(  # noqa: PLR0917
    tmp_path: Path,
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    arguments: list[str],
    words: str,
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    Image.new("RGB", (8, 8)).save(tmp_path / "x.png")
    monkeypatch.setattr(f"protopfaith.{module}.{name}", interrupt)
    done = protopfaith(tmp_path, *(argument.format(run=run) for argument in arguments))
    assert done.returncode == 130
    assert "Interrupted. " in done.stderr
    assert words.format(run=run) in done.stderr


def test_what_is_logged_is_never_wrapped_in_the_middle_of_a_path(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    path = "/".join(["a folder [with] brackets"] * 8)
    for level in (logging.INFO, logging.WARNING):
        Lines().handle(logging.LogRecord("protopfaith", level, "", 0, "It is at %s", (path,), None))
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"It is at {path}"
    assert second == f"Note: It is at {path}"


def test_lightning_is_silent_about_what_the_recipe_says() -> None:
    program = (
        "import sys; from protopfaith.cli import main; sys.argv = ['protopfaith', '--version']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "from lightning.fabric import Fabric; Fabric(accelerator='cpu', precision='bf16-mixed')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Mixed Precision" not in done.stderr + done.stdout


def test_a_folder_that_is_gone_is_told_before_anything_is_imported(tmp_path: Path) -> None:
    """MKL ends the whole process there, with words of its own."""
    program = (
        "import os, sys, protopfaith.cli; os.rmdir(os.getcwd());"
        "sys.argv = ['protopfaith', 'predict', 'a', 'b']; protopfaith.cli.main()"
    )
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path / "gone", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The folder that this command was called in is not there any more")
    assert "MKL" not in done.stdout + done.stderr


def test_decoders_that_were_tried_in_vain_leave_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("no such marker")
    except ValueError:
        told = sys.exc_info()
    for name in ("pydicom", "protopfaith"):
        Lines().handle(logging.LogRecord(name, logging.ERROR, "", 0, f"{name} failed", (), told))
    shown = capsys.readouterr().err
    assert "protopfaith failed" in shown
    assert "pydicom failed" not in shown


def test_torch_keeps_its_statistics_to_itself(capsys: pytest.CaptureFixture[str]) -> None:
    name = "torch._subclasses.fake_tensor"
    for level, text in ((logging.INFO, "  cache_misses: 0"), (logging.WARNING, "something to know")):
        Lines().handle(logging.LogRecord(name, level, "", 0, text, (), None))
    told = capsys.readouterr().err
    assert "something to know" in told
    assert "cache_misses" not in told


def test_names_stay_as_they_are_where_they_look_like_emojis_or_markup(tmp_path: Path) -> None:
    done = protopfaith(tmp_path, "recipes", "show", ":cat:[red]x.yaml")
    fails_with(done, ":cat:[red]x.yaml")
    (tmp_path / ":dog:").mkdir()
    done = protopfaith(tmp_path, "data", "show", "birds", "--size", "16", "--out", ":dog:/sheet.png")
    assert ":dog:/sheet.png" in done.stdout


@pytest.mark.parametrize("odd", ["0", "1", "x", "³"])
def test_a_terminal_without_room_is_none(tmp_path: Path, odd: str) -> None:
    command = [sys.executable, "-m", "protopfaith", "recipes"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "COLUMNS": odd}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "birds_multilabel" in done.stdout


def test_files_of_the_folder_are_not_taken_for_modules_of_python(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError('not the one that is meant')")
    (tmp_path / "my_extension.py").write_text("print('imported')")
    command = [sys.executable, "-m", "protopfaith", "--import", "my_extension", "recipes"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "imported" in done.stdout


def test_what_is_printed_is_text_and_no_control_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("\x1b[1mname", title="\x9b2J")
    table.add_row(escape("\x1b[red]a\x07b"), "中文\nsecond line")
    console = PlainConsole(emoji=False, width=60)
    console.print(table)
    console.print("a\x1bc\nb", markup=False)
    text = capsys.readouterr().out
    for words in (r"\x1b[1mname", r"\x9b2J", r"\x1b[red]a\x07b", "中文", "second line", "a\\x1bc\nb\n"):
        assert words in text
    assert text.replace("\n", "").isprintable()
