"""`protopfaith predict`: the classes of images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protopfaith.anonymous import KEY
from protopfaith.arguments import named
from protopfaith.cli.app import app, fail_for, next_command, note
from protopfaith.cli.checks import (
    check_frame_option,
    check_images,
    check_output_file,
    check_run,
    problems_of_all,
)
from protopfaith.cli.options import Anonymous, BatchSize, Device, Frame, ImageFiles, RunFolder

if TYPE_CHECKING:
    from protopfaith.evaluation.prediction import Prediction


@app.command()
def predict(
    folder: RunFolder,
    images: ImageFiles,
    csv: Annotated[Path | None, typer.Option(help="Write all probabilities to this file.")] = None,
    frame: Frame = None,
    anonymous: Anonymous = False,
    device: Device = "auto",
    batch_size: BatchSize = 64,
) -> None:
    """Classify images; files that cannot be read are listed at the end and make the exit code 1.

    A line that ends with "unfamiliar" marks an image that looks like nothing the network knows, however high
    its probability.
    """
    check_run(folder)
    check_images(images)
    check_frame_option(frame)
    ours = [folder / name for name in ("model.safetensors", "metrics.csv")]
    check_output_file(csv, ".csv", *images, *ours, beginning=b"image,class")
    if csv is not None and anonymous:
        check_output_file(_key_of(csv), ".csv", *images, *ours, beginning=KEY)
    from protopfaith.data.listing import expand_folders

    images = expand_folders(images)
    if csv is None and not anonymous:
        fail_for(problems_of_all(images))
    note(f"Loading {folder} ...")
    from protopfaith.anonymous import public_names, write_key
    from protopfaith.data.frames import with_frames
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.prediction import predict_files, write_predictions
    from protopfaith.training import Run
    from protopfaith.training.reference import reference_of

    run = Run(folder)
    model = run.model(choose_device(device))
    predictions = []
    files = with_frames(images, frame)
    shown = iter(public_names(files, anonymous=True) if anonymous else map(str, files))
    reference = reference_of(run, model)
    if reference is None:
        note(
            "Probabilities are not calibrated, and unfamiliar images not told: the run was never measured. "
            f"This does it: {next_command('evaluate', folder)}"
        )
    for prediction in predict_files(model, run.preprocessing(), files, batch_size, reference=reference):
        predictions.append(prediction)
        for line in _lines(prediction, named(next(shown)), model.class_names):
            typer.echo(line)
    if csv is not None:
        write_predictions(csv, predictions, model.class_names, anonymous=anonymous)
        if anonymous:
            write_key(_key_of(csv), files)
    fail_for([prediction.error for prediction in predictions if prediction.error])


def _lines(prediction: Prediction, name: str, class_names: Sequence[str]) -> Iterator[str]:
    """Plain lines with tabs, for other programs: one for an image, or for each of its findings."""
    more = "\tunfamiliar" if prediction.unfamiliar else ""
    if prediction.verdicts:
        rows = zip(class_names, prediction.verdicts, prediction.probabilities, strict=True)
        for finding, verdict, p in rows:
            yield f"{name}\t{named(finding)}\t{verdict}\t{p:.3f}{more}"
    elif prediction.error is None:
        yield f"{name}\t{named(prediction.class_name or '')}\t{prediction.probability:.3f}{more}"


def _key_of(csv: Path) -> Path:
    """Where it stands which file has which number."""
    return csv.with_name(f"{csv.stem}-key.csv")
