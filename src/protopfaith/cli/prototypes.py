"""`protopfaith prototypes`: what is each of them?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from protopfaith.cli.app import NamesInHelp, app, interruptible, note, same_command, say
from protopfaith.cli.checks import check_output_folder, check_run
from protopfaith.cli.names import check_estimator_options
from protopfaith.cli.options import (
    Autocast,
    Baseline,
    Budget,
    Device,
    Estimator,
    EstimatorOption,
    MovedRoot,
    Players,
    Precision,
    Ray,
    RunFolder,
    Seed,
    Shard,
    check_distribution,
    note_plan,
    option_names,
    parse_options,
)


@app.command(cls=NamesInHelp)
def prototypes(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="Where to write; default RUN/prototypes.")] = None,
    players: Players = None,
    precision: Precision = None,
    budget: Budget = None,
    estimator: Estimator = "default",
    option: EstimatorOption = None,
    baseline: Baseline = "zero",
    nearest: Annotated[
        int, typer.Option(min=1, max=1000, help="Training patches to show for each prototype.")
    ] = 5,
    shard: Shard = None,
    ray: Ray = None,
    root: MovedRoot = None,
    device: Device = "auto",
    autocast: Autocast = "auto",
    seed: Seed = 0,
) -> None:
    """Show what every prototype is: source, attribution, nearest patches, duplicates, idle ones."""
    check_run(folder, root)
    check_output_folder(out, folder)
    part = check_distribution(shard, ray)
    check_estimator_options(estimator, option_names(option))
    note(f"Loading {folder} ...")
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.parts_results import part_remarks
    from protopfaith.explanation import Explainer, Settings, explain_prototypes, explain_sources
    from protopfaith.progress import Bar
    from protopfaith.training import Run

    note_plan(estimator, budget, precision)
    settings = Settings(
        players=players,
        precision=precision,
        budget=budget,
        estimator=estimator,
        options=parse_options(estimator, option or []),
        baseline=baseline,
        autocast=autocast,
        seed=seed,
    )
    kept = f"Finished source images are kept in {folder}; go on with the rest: {same_command()}"
    with interruptible(lambda: kept), Bar() as bar:
        explainer, told = Explainer(Run(folder, root), device=choose_device(device)), bar.report(str(folder))
        if shard is not None:
            left = explain_sources(explainer, settings=settings, shard=part, progress=told)
            if left:
                say(f"{len(left):,} prototypes are left to other shards; the last one writes the page")
                return
        catalog = explain_prototypes(explainer, settings=settings, nearest=nearest, progress=told, ray=ray)
    remarks = part_remarks(folder / "evaluation", catalog.weights_hash)
    say(str(replace(catalog, remarks=remarks).save(out or folder / "prototypes")))
