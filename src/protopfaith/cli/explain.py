"""`protopfaith explain`: why this class?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protopfaith.cli.app import NamesInHelp, app, fail_for, interruptible, note, same_command, say
from protopfaith.cli.bulk import AtOnce, Ray, Shard, Ship, check_bulk, write_bulk
from protopfaith.cli.checks import (
    check_budget,
    check_classes,
    check_frame_option,
    check_image,
    check_images,
    check_one_image,
    check_output_folder,
    check_run,
    problems_of_all,
)
from protopfaith.cli.names import check_baseline, check_estimator_options
from protopfaith.cli.options import (
    Anonymous,
    Autocast,
    Baseline,
    Budget,
    Device,
    Estimator,
    EstimatorOption,
    Frame,
    ImageFiles,
    MovedRoot,
    Players,
    Precision,
    RunFolder,
    Seed,
    checked,
    note_plan,
    option_names,
    parse_options,
)
from protopfaith.specs import check_output

Bulk = Annotated[
    Path | None,
    typer.Option(
        help="For very many images: instead of reports, one row per image in a Parquet data set here. Images "
        "may also be CSV, TSV or Parquet lists with a column file, and WebDataset tars."
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="A rough answer soon: larger regions, 512 evaluations, no maps of source images.",
    ),
]
Target = Annotated[
    str | None, typer.Option("--class", help="The class to explain, if not the predicted one.")
]
Output = Annotated[
    str | None,
    typer.Option(
        "--explain",
        callback=checked(check_output),
        help="What the map adds up to: margin (the logit minus the mean of all, the default), "
        "logit, versus (minus that of the next class, or of --versus), log_probability.",
    ),
]
SecondBaseline = Annotated[
    str | None,
    typer.Option(callback=check_baseline, help="Repeat with this baseline and say how well both agree."),
]
NoSources = Annotated[
    bool, typer.Option("--no-sources", help="Do not explain prototypes on the images they come from.")
]
NoCoarse = Annotated[
    bool, typer.Option("--no-coarse", help="Skip the coarse answer that comes before the real one.")
]
Mask = Annotated[
    Path | None,
    typer.Option(help="An image, black except for the object: how much evidence lies outside it?"),
]
Dicom = Annotated[
    bool,
    typer.Option("--dicom", help="For DICOM images: also write the map as DICOM files of the same study."),
]


@app.command(cls=NamesInHelp)
def explain(
    folder: RunFolder,
    images: ImageFiles,
    out: Annotated[Path | None, typer.Option(help="Where to write; default RUN/explained.")] = None,
    bulk: Bulk = None,
    shard: Shard = None,
    ray: Ray = None,
    ship: Ship = False,
    at_once: AtOnce = None,
    quick: Quick = False,
    players: Players = None,
    precision: Precision = None,
    budget: Budget = None,
    estimator: Estimator = "default",
    option: EstimatorOption = None,
    target: Target = None,
    versus: Annotated[str | None, typer.Option(help="Why the class and not this one?")] = None,
    output: Output = None,
    baseline: Baseline = "zero",
    second_baseline: SecondBaseline = None,
    no_sources: NoSources = False,
    no_coarse: NoCoarse = False,
    mask: Mask = None,
    frame: Frame = None,
    dicom: Dicom = False,
    anonymous: Anonymous = False,
    root: MovedRoot = None,
    device: Device = "auto",
    autocast: Autocast = "auto",
    seed: Seed = 0,
) -> None:
    """Explain decisions: a report, figures and data for each image.

    Finished images are not redone. Images that fail are listed at the end and make the exit code 1.
    """
    check_run(folder, root)
    check_classes(folder, target, versus)
    check_images(images)
    check_frame_option(frame)
    results = out or folder / "explained"
    check_output_folder(results if bulk is None else out, folder)
    alone = {"--out": out, "--mask": mask, "--frame": frame, "--dicom": dicom or None}
    alone["--second-baseline"] = second_baseline
    check_bulk(bulk, shard, ray, ship, at_once, instead=alone)
    check_estimator_options(estimator, option_names(option))
    check_budget(folder, estimator, players, budget)
    check_image(mask)
    if mask is not None:
        fail_for(problems_of_all([mask]))
    if bulk is None:
        from protopfaith.data.listing import expand_folders

        images = expand_folders(images)
        check_one_image(mask, images)
        wrong = [] if anonymous else problems_of_all(images, dicom=dicom)
        fail_for([f"{path}: {problem}" for path, problem in zip(images, wrong, strict=False)])
    note(f"Loading {folder} ...")
    from protopfaith.data.frames import with_frames
    from protopfaith.devices import choose_device
    from protopfaith.explanation import Settings, explain_files
    from protopfaith.training import Run

    note_plan(estimator, budget, precision)
    settings = Settings(
        players=players,
        precision=precision,
        budget=budget,
        estimator=estimator,
        options=parse_options(estimator, option or []),
        baseline=baseline,
        second_baseline=second_baseline,
        sources=not no_sources,
        output=output,
        autocast=autocast,
        seed=seed,
    )
    if quick:
        settings = settings.made_quick()
    if bulk is not None:
        run = Run(folder, root)
        write_bulk(run, images, bulk, settings, target, versus, device, shard, ray, ship, at_once, anonymous)
        return
    with interruptible(
        lambda: (
            f"Finished images are kept in {results}, finished source images in {folder}; go on with the "
            f"rest: {same_command()}"
        )
    ):
        batch = explain_files(
            Run(folder, root),
            with_frames(images, frame),
            results,
            target=target,
            versus=versus,
            settings=settings,
            coarse=not no_coarse,
            mask=mask,
            progress=True,
            device=choose_device(device),
            anonymous=anonymous,
            dicom=dicom,
        )
    for report in batch.reports:
        say(str(report))
    if batch.cases:
        say(f"All cases: {batch.index}")
    fail_for([f"{failure.path}: {failure.message}" for failure in batch.failures])
