"""`protopfaith train`: makes a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from protopfaith.arguments import shown, whole_number
from protopfaith.cli.app import app, interruptible, next_command, note, same_command, say
from protopfaith.cli.checks import check_file, check_overrides, check_recipe, check_root, check_run
from protopfaith.cli.names import check_recipe_names
from protopfaith.cli.options import Ray, Root, Shard, check_distribution, parse_indices
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import check_folder, check_plain
from protopfaith.training.folds import FOLDS, check_folds
from protopfaith.training.grid import load_grid
from protopfaith.training.recipe import Recipe, load_recipe
from protopfaith.training.unused import check_used
from protopfaith.writing import refuse_existing

if TYPE_CHECKING:
    import pandas as pd

    from protopfaith.training import Run


RecipeName = Annotated[
    str | None,
    typer.Argument(help="A recipe by name (see [b]protopfaith recipes[/b]) or a YAML file."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="Values that replace the recipe's."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the interrupted run in --out; it keeps its recipe.")
]
Groups = Annotated[
    Path | None,
    typer.Option(help="A CSV file of image and group: images of a group (a patient) stay together."),
]
Weights = Annotated[
    str | None, typer.Option(help="Encoder weights: imagenet, or a .pth or .safetensors file.")
]
Folds = Annotated[str | None, typer.Option(help="Train a model for each fold: all, or numbers such as 0,2.")]
Grid = Annotated[
    str | None,
    typer.Option(help="Search a space (a YAML file, or the paper's: cub, rsna_convnet, rsna_resnet)."),
]
AtOnce = Annotated[int, typer.Option(help="How many folds or points to train at a time, on one device.")]


@app.command()
def train(
    recipe: RecipeName = None,
    overrides: Overrides = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make; default runs/RECIPE.")] = None,
    resume: Resume = False,
    root: Root = None,
    groups: Groups = None,
    weights: Weights = None,
    folds: Folds = None,
    grid: Grid = None,
    at_once: AtOnce = 1,
    shard: Shard = None,
    ray: Ray = None,
) -> None:
    """Train a prototype network from a recipe.

    Examples:

    protopfaith train birds

    protopfaith train folder --root my_images optimization.batch_size=32 --out runs/mine

    protopfaith train cub --root data --weights imagenet --folds all --at-once 2

    protopfaith train --resume --out runs/mine compute.workers=2
    """
    check_root(root)
    check_together(out, weights, groups)
    check_several(grid, folds, at_once, spread=shard is not None or ray is not None)
    part = check_distribution(shard, ray)
    if grid is not None and recipe is not None and "=" not in recipe:
        raise ProtoPFaithError(
            f"A grid names its recipe itself, so {shown(recipe)} beside it has no meaning; leave it out, or "
            "train it without --grid."
        )
    recipe, changes = split_arguments(recipe, overrides or [], has_recipe=grid is None)
    check_overrides(changes)
    changes += [f"data.root={root}"] if root is not None else []
    changes += [f"model.weights={weights}"] if weights is not None else []
    changes += [f"data.groups={groups.absolute()}"] if groups is not None else []
    chosen = parse_folds(folds)
    if chosen is not None and any(change.startswith("data.fold=") for change in changes):
        raise ProtoPFaithError(
            "The folds are given twice, by --folds and by data.fold; leave one of them out."
        )
    check_before_torch(recipe, grid, out, changes, resume)
    if resume and recipe is not None and chosen is None:
        check_run(run_folder(out, recipe))
    note("Loading torch ...")
    if grid is not None:
        search(grid, out, changes, resume, at_once=at_once, shard=part, ray=ray)
        return
    named = recipe or recipe_to_resume(cast(Path, out), changes)
    folder = run_folder(out, named)
    if chosen is not None:
        cross_validate(named, folder, changes, chosen, resume, at_once=at_once, shard=part, ray=ray)
    else:
        train_once(named, folder, changes, resume)


def run_folder(out: Path | None, recipe: str) -> Path:
    """Where a recipe's run goes, if nobody says."""
    return out or Path("runs") / Path(recipe).stem


def check_together(out: Path | None, weights: str | None, groups: Path | None) -> None:
    """Raises if an option has no value to speak of."""
    if out is not None and str(out) in ("", "."):
        raise ProtoPFaithError("The run folder has no name; give one with --out.")
    if weights is not None and not weights.strip():
        raise ProtoPFaithError("The weights have no name; give imagenet, a file, or leave --weights out.")
    check_file(groups, "CSV file of image and group")


def check_several(grid: str | None, folds: str | None, at_once: int, *, spread: bool) -> None:
    """Raises if options for several runs are given for one, or do not go together."""
    if grid is not None and folds is not None:
        raise ProtoPFaithError("A grid and folds cannot be trained at once; give --grid or --folds.")
    one = grid is None and folds is None
    if at_once != 1 and one:
        raise ProtoPFaithError("There is one run to train, so none at once; add --folds or --grid.")
    whole_number(at_once, "The number of trainings at once", least=1)
    if spread and one:
        raise ProtoPFaithError(
            "--shard and --ray spread several runs, but this is one; give --folds or --grid, or use "
            "compute.devices for one run on several GPUs."
        )


def check_before_torch(
    recipe: str | None, grid: str | None, out: Path | None, changes: list[str], resume: bool
) -> None:
    """Raises if what is to be trained is not there, or has a mistake that a reader can see."""
    if grid is not None:
        for one in load_grid(grid).recipes(changes):
            _check_recipe(one, resume)
    elif recipe is not None:
        check_recipe(recipe)
        _check_recipe(load_recipe(recipe, changes), resume)
    elif not resume or out is None:
        raise ProtoPFaithError("Nothing to train: name a recipe, or the run to resume with --resume --out.")
    else:
        check_run(out)
    if not resume:
        refuse_existing(run_folder(out, cast(str, grid or recipe)))
    else:
        folder = run_folder(out, cast(str, grid or recipe))
        check_plain(folder / "last.safetensors")
        check_folder(folder / "tensorboard")


def _check_recipe(recipe: Recipe, resume: bool) -> None:
    check_recipe_names(recipe)
    if not resume:
        check_used(recipe)


def parse_folds(folds: str | None) -> Sequence[int] | None:
    """The folds to train, each once; None for a single run."""
    if folds is None:
        return None
    chosen = FOLDS if folds == "all" else parse_indices(folds, "Folds")
    check_folds(chosen)
    return chosen


def kept_run(folder: Path) -> str:
    """What an interrupted training leaves."""
    if not (folder / "last.safetensors").is_file():
        return f"Nothing is kept yet but the recipe in {folder}; start again with another --out."
    again = next_command("train", "--resume", "--out", folder)
    return f"The run is kept in {folder} as it was after its last finished epoch; go on with: {again}"


def kept_runs(folder: Path) -> str:
    """What an interrupted series of trainings leaves."""
    command = same_command() if "--resume" in sys.argv else f"{same_command()} --resume"
    return f"What is trained is kept in {folder}; go on with: {command}"


def split_arguments(
    first: str | None, others: list[str], *, has_recipe: bool
) -> tuple[str | None, list[str]]:
    """The recipe and the overrides: what comes first is an override where there is no recipe to name."""
    if first is not None and (not has_recipe or "=" in first):
        return None, [first, *others]
    return first, list(others)


def recipe_to_resume(out: Path, changes: list[str]) -> str:
    """A run brings its own recipe; a stranger's run does not say where images lie."""
    from protopfaith.training import Run

    given = [change.partition("=")[2] for change in changes if change.startswith("data.root=")]
    run = Run(out, given[-1] if given else None)
    run.check_paths()
    return str(run.recipe_path)


def train_once(recipe: str, folder: Path, changes: list[str], resume: bool) -> None:
    """One run."""
    from protopfaith.training import train as run_training

    with interruptible(lambda: kept_run(folder)):
        _print_result(run_training(load_recipe(recipe, changes), folder, resume=resume))


def cross_validate(
    recipe: str, folder: Path, changes: list[str], folds: Sequence[int], resume: bool, **spread: Any
) -> None:
    """A run for each fold."""
    from protopfaith.training import train_folds

    with interruptible(lambda: kept_runs(folder)):
        found = train_folds(load_recipe(recipe, changes), folder, folds, resume=resume, **spread)
        _print_frame(found, folder)


def search(grid: str, out: Path | None, changes: list[str], resume: bool, **spread: Any) -> None:
    """A run for each point of a search space, which names its recipe."""
    from protopfaith.training import train_grid

    folder = run_folder(out, grid)
    with interruptible(lambda: kept_runs(folder)):
        _print_frame(train_grid(grid, folder, changes, resume=resume, **spread), folder)


def _print_result(run: Run) -> None:
    result = run.result()
    for line in (run.comparison(), *run.shortfall()):
        say(line)
    value = result["validation_balanced_accuracy"]
    accuracy = "not measured" if value is None else f"{value:.3f}"
    say(
        f"Best epoch {result['epoch'] + 1}: validation balanced accuracy {accuracy}, "
        f"{result['distinct_prototypes']} of {result['prototypes']} prototypes distinct. "
        f"The run is in {run.folder}; next: {next_command('evaluate', run.folder)}"
    )


def _print_frame(frame: pd.DataFrame, folder: Path) -> None:
    if frame.empty:
        say(f"Runs in {folder} are left to other shards; the last one prints the table")
        return
    say(frame.to_string(index=False, float_format="{:.3f}".format))
    say(f"The runs are in {folder}")
