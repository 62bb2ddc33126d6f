"""`protopfaith prune`: fewer prototypes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protopfaith.cli.app import app, console, next_command, note, say
from protopfaith.cli.checks import check_output_folder, check_run
from protopfaith.cli.options import Device, MovedRoot, RunFolder, parse_indices
from protopfaith.specs import check_dropped


@app.command()
def prune(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="The folder of the new run; default RUN-pruned.")] = None,
    prototypes: Annotated[
        str | None, typer.Option(help="Prototypes to drop, such as 3,17,18; default: all duplicates.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1e9,
            help="Squared distance up to which prototypes are duplicates; "
            "default 1e-6 times the length of a prototype.",
        ),
    ] = None,
    leaves: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="For a ProtoTree: drop leaves whose class is at most this much above chance."
        ),
    ] = None,
    root: MovedRoot = None,
    device: Device = "auto",
) -> None:
    """Drop duplicate or named prototypes, refit the classifier F and report accuracy before and after."""
    check_run(folder, root)
    check_output_folder(out, folder)
    drop = None if prototypes is None else parse_indices(prototypes, "Prototypes")
    check_dropped(drop, tolerance)
    note(f"Loading {folder} ...")
    from protopfaith.training import Run, prune_run

    out = out or folder.with_name(f"{folder.name}-pruned")
    result = prune_run(Run(folder, root), out, drop=drop, tolerance=tolerance, leaves=leaves, device=device)
    console.print(result.table())
    say(f"The pruned run is in {result.run.folder}; next: {next_command('evaluate', result.run.folder)}")
