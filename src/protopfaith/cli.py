"""The command line: one thin command per verb, no logic of its own."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler

from protopfaith import __version__
from protopfaith.errors import ProtoPFaithError

if TYPE_CHECKING:
    import pandas as pd

    from protopfaith.evaluation.classification import Classification
    from protopfaith.training import Run

# Heavy packages are imported inside the commands: --help answers at once.

console = Console()
errors = Console(stderr=True)
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Prototype networks whose explanations are true: train, explain, and measure how faithful.",
)
data_app = typer.Typer(no_args_is_help=True, help="Check, prepare and look at image data.")
app.add_typer(data_app, name="data")

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.")]
Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:1, ...")]
Root = Annotated[Path | None, typer.Option(help="The folder that holds the images.")]
BatchSize = Annotated[int, typer.Option(min=1, help="Images in one forward pass.")]


def main() -> None:
    """Runs the command line; a ProtoPFaithError becomes one sentence and exit code 1."""
    logging.basicConfig(
        level=logging.INFO, format="%(message)s", handlers=[RichHandler(console=errors, show_path=False)]
    )
    for noisy in ("lightning", "lightning.fabric", "lightning_fabric", "PIL", "matplotlib"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        app()
    except ProtoPFaithError as error:
        errors.print(f"[bold red]Error:[/] {error}", soft_wrap=True, highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("Interrupted.")
        sys.exit(130)


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"protopfaith {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command()
def train(
    recipe: Annotated[
        str | None,
        typer.Argument(help="A recipe by name (see [b]protopfaith recipes[/b]) or a YAML file."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Values that replace the recipe's."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make; default runs/RECIPE.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the interrupted run in --out; it keeps its recipe.")
    ] = False,
    root: Root = None,
    weights: Annotated[
        str | None, typer.Option(help="Encoder weights: imagenet, or a .pth or .safetensors file.")
    ] = None,
    folds: Annotated[
        str | None, typer.Option(help="Train a model for each fold: all, or numbers as 0,2.")
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(help="Search a space (a YAML file, or the paper's: cub, rsna_convnet, rsna_resnet)."),
    ] = None,
) -> None:
    """Train a ProtoPNet as a recipe says.

    Examples:

    protopfaith train birds

    protopfaith train folder --root my_images optimization.batch_size=32 --out runs/mine

    protopfaith train cub --root data --weights imagenet --folds all

    protopfaith train --resume --out runs/mine
    """
    from protopfaith.training import load_recipe, train_folds, train_grid
    from protopfaith.training import train as run_training

    changes = [recipe] if grid is not None and recipe else []  # a grid brings its own recipe
    changes += overrides or []
    changes += [f"data.root={root}"] if root is not None else []
    changes += [f"model.weights={weights}"] if weights is not None else []
    if out is None and (recipe or grid) is None:
        raise ProtoPFaithError("Nothing to train: name a recipe, or the run to resume with --resume --out.")
    folder = out or Path("runs") / Path(grid or recipe or "").stem
    if grid is not None:
        _print_frame(train_grid(grid, folder, changes, resume=resume), folder)
    elif recipe is None:
        _print_result(run_training(None, folder, resume=resume))
    elif folds is not None:
        chosen = {} if folds == "all" else {"folds": _indices(folds, "Folds")}
        _print_frame(train_folds(load_recipe(recipe, changes), folder, resume=resume, **chosen), folder)
    else:
        _print_result(run_training(load_recipe(recipe, changes), folder, resume=resume))


@app.command()
def recipes() -> None:
    """List the recipes in the package, with what each is for."""
    from protopfaith.training import recipe_names
    from protopfaith.training.recipe import recipe_summary

    for name in recipe_names():
        console.print(f"[bold]{name:<14}[/] {recipe_summary(name)}", highlight=False)


@app.command()
def evaluate(
    folder: RunFolder,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    device: Device = "auto",
    batch_size: BatchSize = 64,
) -> None:
    """Balanced accuracy, sensitivity, specificity, AUROC, confusion matrix and distinct prototypes."""
    from protopfaith.training import Run

    run = Run(folder)
    result = _evaluate(run, split, device, batch_size)
    console.print(result.table())
    _print_prototypes(run)
    console.print(f"Written to {run.folder / 'evaluation'}", soft_wrap=True, highlight=False)


@app.command()
def predict(
    folder: RunFolder,
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")],
    csv: Annotated[Path | None, typer.Option(help="Write all probabilities to this file.")] = None,
    device: Device = "auto",
    batch_size: BatchSize = 64,
) -> None:
    """Classify images; files that cannot be read are listed at the end and make the exit code 1."""
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.prediction import expand_folders, predict_files, write_predictions
    from protopfaith.training import Run

    run = Run(folder)
    model = run.model(choose_device(device))
    predictions = list(predict_files(model, run.preprocessing(), expand_folders(images), batch_size))
    for prediction in predictions:
        if prediction.error is None:
            console.print(f"{prediction.image}\t{prediction.class_name}\t{prediction.probability:.3f}")
    if csv is not None:
        write_predictions(csv, predictions, model.class_names)
    _fail_for([prediction.error for prediction in predictions if prediction.error])


@app.command()
def prune(
    folder: RunFolder,
    out: Annotated[Path, typer.Option(help="The folder of the new run.")],
    prototypes: Annotated[
        str | None, typer.Option(help="Prototypes to drop, as 3,17,18; default: all duplicates.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Squared distance up to which prototypes are duplicates.")
    ] = 0.0,
    device: Device = "auto",
) -> None:
    """Drop duplicate or named prototypes, refit F and report accuracy before and after."""
    from protopfaith.training import Run, prune_run

    drop = None if prototypes is None else _indices(prototypes, "Prototypes")
    result = prune_run(Run(folder), out, drop=drop, tolerance=tolerance, device=device)
    console.print(result.table())
    console.print(f"The pruned run is in {result.run.folder}", soft_wrap=True, highlight=False)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Train on the embedded birds (about two minutes on two cores) and show what came out.

    Interrupted, it continues where it was; repeated, it shows the finished run.
    """
    from protopfaith.training import load_recipe
    from protopfaith.training import train as run_training

    run = run_training(load_recipe("birds"), out, resume=(out / "recipe.yaml").is_file())
    result = _evaluate(run, "test", "auto", 64)
    console.print(result.table())
    _print_prototypes(run)
    console.print("\nNext:", style="bold")
    for line in (f"protopfaith evaluate {out}", f"protopfaith prune {out} --out {out}-pruned"):
        console.print(f"  {line}", highlight=False)


@data_app.command("prepare")
def data_prepare(
    name: Annotated[str, typer.Argument(help="birds, folder, cub, dogs or rsna.")],
    root: Root = None,
    size: Annotated[int | None, typer.Option(help="Training size in pixels.")] = None,
    skip_unreadable: Annotated[bool, typer.Option(help="Go on without images that cannot be read.")] = False,
) -> None:
    """Check a data set file by file and build its fast local cache."""
    from protopfaith.data import prepare

    console.print(str(prepare(name, root, size, skip_unreadable=skip_unreadable)), highlight=False)


@data_app.command("show")
def data_show(
    name: Annotated[str, typer.Argument(help="birds, folder, cub, dogs or rsna.")],
    out: Annotated[Path, typer.Option(help="The picture to write.")] = Path("contact-sheet.png"),
    root: Root = None,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "train",
    size: Annotated[int | None, typer.Option(help="Training size in pixels.")] = None,
    rows: Annotated[int, typer.Option(min=1)] = 8,
    columns: Annotated[int, typer.Option(min=1)] = 8,
    boxes: Annotated[bool, typer.Option(help="Draw boxes and part locations where known.")] = False,
    seed: Annotated[int | None, typer.Option(help="Pick images at random.")] = None,
) -> None:
    """Draw a contact sheet of a data set, one class per row."""
    from protopfaith.data import contact_sheet, load_data
    from protopfaith.files import atomic

    images = _split(load_data(name, root=root, size=size).sets(), split)
    sheet = contact_sheet(images, rows, columns, boxes=boxes, seed=seed)
    with atomic(out) as partial:
        sheet.save(partial, format="PNG")
    console.print(f"Written to {out}", soft_wrap=True, highlight=False)


def _evaluate(run: Run, split: str, device: str, batch_size: int) -> Classification:
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.prediction import classify_set, write_classification

    images = _split(run.data().sets(), split)
    result = classify_set(run.model(choose_device(device)), images, run.preprocessing(), batch_size)
    write_classification(run.folder / "evaluation", split, result)
    return result


def _split(sets: dict[str, Any], name: str) -> Any:
    from protopfaith.registry import did_you_mean

    if name not in sets:
        raise ProtoPFaithError(f"There is no split named {name!r}; {did_you_mean(name, sets)}")
    return sets[name]


def _print_result(run: Run) -> None:
    result = run.result
    value = result["validation_balanced_accuracy"]
    accuracy = "not measured" if value is None else f"{value:.3f}"
    console.print(
        f"Best epoch {result['epoch']}: validation balanced accuracy {accuracy}, "
        f"{result['distinct_prototypes']} of {result['prototypes']} prototypes distinct. "
        f"The run is in {run.folder}",
        soft_wrap=True,
        highlight=False,
    )


def _print_prototypes(run: Run) -> None:
    from protopfaith.network import distinct_prototypes

    distinct = distinct_prototypes(run.model())
    console.print(
        f"{distinct.distinct} of {distinct.total} prototypes are distinct, "
        f"{min(distinct.per_class)} to {max(distinct.per_class)} in a class",
        highlight=False,
    )


def _print_frame(frame: pd.DataFrame, folder: Path) -> None:
    console.print(frame.to_string(index=False, float_format="{:.3f}".format), highlight=False)
    console.print(f"The runs are in {folder}", soft_wrap=True, highlight=False)


def _indices(text: str, what: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ProtoPFaithError(f"{what} are numbers with commas between, not {text!r}.") from None


def _fail_for(problems: list[str]) -> None:
    """Lists what went wrong, after everything else was done, and says so in the exit code."""
    for problem in problems:
        errors.print(f"[bold red]Failed:[/] {problem}", soft_wrap=True, highlight=False)
    if problems:
        raise typer.Exit(1)
