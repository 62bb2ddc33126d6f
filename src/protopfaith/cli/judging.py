"""Commands that judge a model and its explanations: evaluate, predict, faithfulness."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protopfaith.cli.app import (
    BatchSize,
    Device,
    MovedRoot,
    NamesInHelp,
    RunFolder,
    Seed,
    Window,
    app,
    console,
    fail_for,
    say,
)
from protopfaith.cli.data import choose_split
from protopfaith.errors import ProtoPFaithError

if TYPE_CHECKING:
    from protopfaith.evaluation.metrics.classification import Classification
    from protopfaith.training import Run


@app.command()
def evaluate(
    folder: RunFolder,
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "test",
    root: MovedRoot = None,
    device: Device = "auto",
    batch_size: BatchSize = 64,
) -> None:
    """Balanced accuracy, sensitivity, specificity, AUROC, confusion matrix and distinct prototypes."""
    from protopfaith.training import Run

    run = Run(folder, root)
    result = evaluate_run(run, split, device, batch_size)
    console.print(result.table())
    print_prototypes(run)
    say(f"Written to {run.folder / 'evaluation'}")


@app.command()
def predict(
    folder: RunFolder,
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")],
    csv: Annotated[Path | None, typer.Option(help="Write all probabilities to this file.")] = None,
    device: Device = "auto",
    batch_size: BatchSize = 64,
) -> None:
    """Classify images; files that cannot be read are listed at the end and make the exit code 1."""
    from protopfaith.data.listing import expand_folders
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.prediction import predict_files, write_predictions
    from protopfaith.training import Run

    run = Run(folder)
    model = run.model(choose_device(device))
    predictions = []
    for prediction in predict_files(model, run.preprocessing(), expand_folders(images), batch_size):
        predictions.append(prediction)
        if prediction.error is None:  # plain lines with tabs, for other programs
            typer.echo(f"{prediction.image}\t{prediction.class_name}\t{prediction.probability:.3f}")
    if csv is not None:
        write_predictions(csv, predictions, model.class_names)
    fail_for([prediction.error for prediction in predictions if prediction.error])


@app.command(cls=NamesInHelp)
def faithfulness(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="Where to write; default RUN/faithfulness.")] = None,
    prototypes: Annotated[
        int | None, typer.Option(min=1, help="How many prototypes, drawn at random; see --all.")
    ] = 8,
    every: Annotated[bool, typer.Option("--all", help="Every prototype.")] = False,
    explainers: Annotated[
        str | None,
        typer.Option(help="Names with commas between; default: all that are installed. Known: {EXPLAINERS}."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N",
            help="Judge a costly explainer on the first N prototypes only, such as dasp=20; truth=N for the "
            "true values. May be repeated.",
        ),
    ] = None,
    players: Window = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps T of a removal curve, at least 5. Default: 50, on a GPU 100.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            min=2, help="Evaluations of the network at most, an image. Default: 1,024, on a GPU 12,288."
        ),
    ] = None,
    truth_budget: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Evaluations an image for the true values; 0: leave them out. Default: 4,096, on a GPU "
            "65,536.",
        ),
    ] = None,
    sizes: Annotated[
        int | None, typer.Option(min=1, help="Coalition sizes of DASP. Default: 4, on a GPU 8.")
    ] = None,
    checked: Annotated[
        int | None,
        typer.Option(min=1, help="Images for axioms and sanity checks. Default: 2, on a GPU 8."),
    ] = None,
    autocast: Annotated[
        str,
        typer.Option(
            help="Number format of plain forward passes: off, auto (bfloat16 on a GPU that has it), "
            "bfloat16, float16. Moments, gradients and axioms stay in full precision."
        ),
    ] = "off",
    quantus: Annotated[bool, typer.Option(help="Add metrics of the Quantus library.")] = False,
    root: MovedRoot = None,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Measure how faithful every explainer is: AOPC, agreement with the truth, axioms, sanity.

    Interrupted, the same command goes on where it was.
    """
    from protopfaith.devices import choose_device
    from protopfaith.evaluation import faithfulness as judge
    from protopfaith.training import Run

    result = judge(
        Run(folder, root),
        out,
        prototypes=None if every else prototypes,
        explainers=explainers.split(",") if explainers else None,
        limits=parse_limits(limit or []),
        players=players,
        steps=steps,
        budget=budget,
        truth_budget=truth_budget,
        sizes=sizes,
        checked=checked,
        autocast=autocast,
        quantus=quantus,
        device=choose_device(device),
        seed=seed,
    )
    console.print(result.table())
    say(f"Written to {result.folder}")


def parse_limits(texts: list[str]) -> dict[str, int]:
    limits = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not number.isdecimal():
            raise ProtoPFaithError(f"A limit is a name and a number, such as dasp=20, not {text!r}.")
        limits[name] = int(number)
    return limits


def evaluate_run(run: Run, split: str, device: str, batch_size: int) -> Classification:
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.prediction import classify_set, write_classification

    images = choose_split(run.data().sets(), split)
    result = classify_set(run.model(choose_device(device)), images, run.preprocessing(), batch_size)
    write_classification(run.folder / "evaluation", split, result)
    return result


def print_prototypes(run: Run) -> None:
    from protopfaith.network import distinct_prototypes, prototype_spread

    model = run.model()
    distinct = distinct_prototypes(model)
    say(
        f"{distinct.distinct} of {distinct.total} prototypes are distinct, "
        f"{min(distinct.per_class)} to {max(distinct.per_class)} in a class"
    )
    within, between = prototype_spread(model)
    say(f"Their median squared distance is {within:.3g} within a class and {between:.3g} between classes")
