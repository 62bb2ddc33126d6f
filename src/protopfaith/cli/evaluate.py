"""`protopfaith evaluate`: how good is the model?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from protopfaith.cli.app import app, console, note, say
from protopfaith.cli.checks import check_run
from protopfaith.cli.data import choose_split
from protopfaith.cli.options import BatchSize, Device, MovedRoot, RunFolder

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
    """Balanced accuracy, sensitivity, specificity, AUROC, calibration, confusion, distinct prototypes."""
    check_run(folder, root)
    note(f"Loading {folder} ...")
    from protopfaith.training import Run

    run = Run(folder, root)
    result = evaluate_run(run, split, device, batch_size)
    console.print(result.table())
    say(str(result.calibration))
    say(run.comparison())
    print_hidden(run, split, device, batch_size)
    print_prototypes(run)
    say(f"Written to {run.folder / 'evaluation'}")


def evaluate_run(run: Run, split: str, device: str, batch_size: int) -> Classification:
    """Classifies a split of the run and writes the results into its folder."""
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.prediction import classify_set, write_classification
    from protopfaith.training.reference import keep_reference, temperature_of

    data, model = run.data(), run.model(choose_device(device))
    images = choose_split(data.sets(), split)
    keep_reference(run, data, model)
    temperature = temperature_of(run, model)
    result = classify_set(model, images, run.preprocessing(), batch_size, temperature)
    write_classification(run.folder / "evaluation", split, result)
    return result


def print_hidden(run: Run, split: str, device: str, batch_size: int) -> None:
    """Says how the network does where parts of images are hidden, as in coalitions."""
    from protopfaith.devices import choose_device
    from protopfaith.training.hidden import hidden_accuracies, told

    images, model = choose_split(run.data().sets(), split), run.model(choose_device(device))
    found = hidden_accuracies(model, images, run.preprocessing(), batch_size=batch_size)
    trained = run.recipe().augmentation.hide.share > 0
    say(f"{told(found)}{'' if trained else ' (it never saw such images in training)'}")


def print_prototypes(run: Run) -> None:
    """Says how many prototypes are distinct, and how far apart they are."""
    from protopfaith.network import distinct_prototypes, prototype_spread

    model = run.model()
    distinct = distinct_prototypes(model)
    say(
        f"{distinct.distinct} of {distinct.total} prototypes are distinct, "
        f"{min(distinct.per_class)} to {max(distinct.per_class)} in a class"
    )
    within, between = prototype_spread(model)
    say(f"Their median squared distance is {within:.3g} within a class and {between:.3g} between classes")
