"""Commands that explain: explain, prototypes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from protopfaith.cli.app import Device, MovedRoot, NamesInHelp, RunFolder, Seed, app, fail_for, say
from protopfaith.errors import ProtoPFaithError

Players = Annotated[
    str, typer.Option(help="Regions: the side of square windows in pixels, or superpixels:N for about N.")
]
Precision = Annotated[
    float | None, typer.Option(min=0, help="Stop at this relative standard error, such as 0.05.")
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Evaluations of the network at most, an image. Default: 4,096, on a GPU 12,288; with "
        "--precision as many as it takes, up to 262,144.",
    ),
]
Estimator = Annotated[
    str,
    typer.Option(help="How Shapley values are estimated: default, {ESTIMATORS}; see docs/estimators.md."),
]
Option = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="An option of the estimator's own, such as sizes=8 (dasp) or shrinkage=false (the default one). "
        "May be repeated.",
    ),
]
Autocast = Annotated[
    str,
    typer.Option(
        help="Number format of the network while regions are hidden: auto (bfloat16 on a GPU that has it, "
        "for speed), off, bfloat16, float16. Reports say what was used."
    ),
]
Baseline = Annotated[
    str, typer.Option(help="What stands for an absent region: zero, blur, blur:8 (pixels), color:0.5, ...")
]


@app.command(cls=NamesInHelp)
def explain(
    folder: RunFolder,
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")],
    out: Annotated[Path | None, typer.Option(help="Where to write; default RUN/explained.")] = None,
    players: Players = "16",
    precision: Precision = None,
    budget: Budget = None,
    estimator: Estimator = "default",
    option: Option = None,
    target: Annotated[
        str | None, typer.Option("--class", help="The class to explain, if not the predicted.")
    ] = None,
    versus: Annotated[str | None, typer.Option(help="Why the class and not this one?")] = None,
    baseline: Baseline = "zero",
    second_baseline: Annotated[
        str | None, typer.Option(help="Repeat with this baseline and say how far both agree.")
    ] = None,
    no_sources: Annotated[
        bool, typer.Option("--no-sources", help="Leave out prototypes on the images they come from.")
    ] = False,
    root: MovedRoot = None,
    device: Device = "auto",
    autocast: Autocast = "auto",
    seed: Seed = 0,
) -> None:
    """Explain decisions: a report, figures and data for each image.

    Finished images are not done again. Images that fail are listed at the end and make the exit code 1.
    """
    from protopfaith.data.listing import expand_folders
    from protopfaith.devices import choose_device
    from protopfaith.explanation import explain_files
    from protopfaith.training import Run

    batch = explain_files(
        Run(folder, root),
        expand_folders(images),
        out or folder / "explained",
        progress=True,
        coarse=True,
        device=choose_device(device),
        autocast=autocast,
        players=players,
        precision=precision,
        budget=budget,
        estimator=estimator,
        options=parse_options(estimator, option or []),
        target=target,
        versus=versus,
        baseline=baseline,
        second_baseline=second_baseline,
        sources=False if no_sources else None,  # None: as usual, under the same name of the case
        seed=seed,
    )
    for report in batch.reports:
        say(str(report))
    if batch.cases:
        say(f"All cases: {batch.index}")
    fail_for([f"{failure.path}: {failure.message}" for failure in batch.failures])


@app.command(cls=NamesInHelp)
def prototypes(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="Where to write; default RUN/prototypes.")] = None,
    players: Players = "16",
    precision: Precision = None,
    budget: Budget = None,
    estimator: Estimator = "default",
    option: Option = None,
    baseline: Baseline = "zero",
    nearest: Annotated[int, typer.Option(min=1, help="Training patches to show for each prototype.")] = 5,
    root: MovedRoot = None,
    device: Device = "auto",
    autocast: Autocast = "auto",
    seed: Seed = 0,
) -> None:
    """Show what every prototype is: source, attribution, nearest patches, duplicates, idle ones."""
    from protopfaith.devices import choose_device
    from protopfaith.explanation import Bar, explain_prototypes
    from protopfaith.training import Run

    with Bar(True) as bar:
        catalog = explain_prototypes(
            Run(folder, root),
            players=players,
            precision=precision,
            budget=budget,
            estimator=estimator,
            options=parse_options(estimator, option or []),
            baseline=baseline,
            nearest=nearest,
            device=choose_device(device),
            autocast=autocast,
            seed=seed,
            progress=bar.report(str(folder)),
        )
    say(str(catalog.save(out or folder / "prototypes")))


def parse_options(estimator: str, texts: list[str]) -> dict[str, Any]:
    """Values as YAML has them, of the types that the estimator's options have.

    An unknown option is the estimator's to refuse: it knows its own.
    """
    from protopfaith.shapley import DEFAULT_METHOD, ESTIMATORS
    from protopfaith.shapley.options import typed_options
    from protopfaith.typed import Unparsed

    name, options = DEFAULT_METHOD if estimator == "default" else estimator, {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ProtoPFaithError(f"An option is a name and a value, such as sizes=8, not {text!r}.")
        options[key] = Unparsed(value)
    return typed_options(name, ESTIMATORS[name], options)
