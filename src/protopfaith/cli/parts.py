"""`protopfaith parts`: which part of the object is each prototype on?"""

from __future__ import annotations

from typing import Annotated

import typer

from protopfaith.cli.app import NamesInHelp, app, console, note, say
from protopfaith.cli.checks import check_run
from protopfaith.cli.data import choose_split
from protopfaith.cli.names import check_explainers
from protopfaith.cli.options import Device, MovedRoot, RunFolder, Seed, Split, Window
from protopfaith.errors import ProtoPFaithError

Explainers = Annotated[
    str,
    typer.Option(callback=check_explainers, help="Whose maps, separated by commas. Known: {EXPLAINERS}."),
]
Classes = Annotated[
    int | None, typer.Option(min=1, max=10**6, help="How many classes, drawn at random; all by default.")
]
Images = Annotated[
    int | None, typer.Option(min=1, max=10**6, help="At most this many images of each class; all by default.")
]
Budget = Annotated[
    int,
    typer.Option(min=2, max=10**9, help="Evaluations of the network per image, for maps that sample."),
]
Noise = Annotated[
    float, typer.Option(min=0, max=1000, help="Standard deviation of the noise on normalized images.")
]


@app.command(cls=NamesInHelp)
def parts(
    folder: RunFolder,
    split: Split = "test",
    explainers: Explainers = "ours,protopnet",
    classes: Classes = None,
    images: Images = None,
    players: Window = None,
    budget: Budget = 512,
    noise: Noise = 0.2,
    root: MovedRoot = None,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Measure which parts prototypes sit on: consistency, stability, coverage (cub, birds)."""
    check_run(folder, root)
    names = [name.strip() for name in explainers.split(",")]
    if not all(names):
        raise ProtoPFaithError(
            f"Maps are names with commas between, such as ours,protopnet, not {explainers!r}."
        )
    note(f"Loading {folder} ...")
    from protopfaith.devices import choose_device
    from protopfaith.evaluation.parts import evaluate_parts
    from protopfaith.progress import Bar
    from protopfaith.shapley import Players
    from protopfaith.show.parts import parts_figure
    from protopfaith.training import Run
    from protopfaith.writing import atomic

    run = Run(folder, root)
    preprocessing = run.preprocessing()
    chosen = choose_split(run.data().sets(), split)
    with Bar() as bar:
        found = evaluate_parts(
            run.model(choose_device(device)),
            preprocessing,
            chosen,
            explainers=names,
            classes=classes,
            per_class=images,
            budget=budget,
            players=None if players is None else Players.windows(preprocessing.size, players),
            noise=noise,
            seed=seed,
            progress=bar.report(str(folder)),
        )
    console.print(found.table())
    written = found.save(run.folder / "evaluation")
    with atomic(written.with_suffix(".png")) as partial:
        parts_figure(found, chosen).savefig(partial, format="png")
    say(f"Written to {written}")
