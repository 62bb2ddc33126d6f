"""`protopfaith faithfulness`: are the explanations true to the model?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from protopfaith.cli.app import NamesInHelp, app, console, interruptible, note, same_command, say
from protopfaith.cli.checks import check_output_folder, check_run
from protopfaith.cli.names import check_explainers, check_names
from protopfaith.cli.options import (
    Device,
    MovedRoot,
    Ray,
    RunFolder,
    Seed,
    Shard,
    Window,
    check_distribution,
    checked,
    parse_limits,
)
from protopfaith.errors import ProtoPFaithError
from protopfaith.specs import check_autocast, check_once

PROTOTYPES = 8

Prototypes = Annotated[
    int | None,
    typer.Option(min=1, max=10**9, help="How many prototypes, drawn at random; see --all. Default: 8."),
]
Explainers = Annotated[
    str | None,
    typer.Option(
        callback=check_explainers,
        help="Names, separated by commas; default: all that are installed. Known: {EXPLAINERS}.",
    ),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=N",
        help="Judge a costly explainer on the first N prototypes only, such as dasp=20; truth=N for the "
        "true values. May be repeated.",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option(max=10_000, help="Steps T of a removal curve, at least 5. Default: 50, on a GPU 100."),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=10**12,
        help="Evaluations of the network at most, per image. Default: 1,024, on a GPU 12,288.",
    ),
]
TruthBudget = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=10**12,
        help="Evaluations per image for the true values; 0: leave them out. Default: 4,096, on a GPU 65,536.",
    ),
]
Sizes = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="Coalition sizes of DASP. Default: 4, on a GPU 8.")
]
Checked = Annotated[
    int | None,
    typer.Option(min=1, max=10**6, help="Images for axioms and sanity checks. Default: 2, on a GPU 8."),
]
Autocast = Annotated[
    str,
    typer.Option(
        callback=checked(check_autocast),
        help="Number format of plain forward passes: off, auto (bfloat16 on a GPU that has it), "
        "bfloat16, float16. Moments, gradients and axioms stay in float32.",
    ),
]


@app.command(cls=NamesInHelp)
def faithfulness(
    folder: RunFolder,
    out: Annotated[Path | None, typer.Option(help="Where to write; default RUN/faithfulness.")] = None,
    prototypes: Prototypes = None,
    every: Annotated[bool, typer.Option("--all", help="Judge every prototype.")] = False,
    explainers: Explainers = None,
    limit: Limit = None,
    players: Window = None,
    steps: Steps = None,
    budget: Budget = None,
    truth_budget: TruthBudget = None,
    sizes: Sizes = None,
    checked: Checked = None,
    autocast: Autocast = "off",
    quantus: Annotated[bool, typer.Option(help="Add metrics of the Quantus library.")] = False,
    shard: Shard = None,
    ray: Ray = None,
    root: MovedRoot = None,
    device: Device = "auto",
    seed: Seed = 0,
) -> None:
    """Measure how faithful every explainer is: AOPC, agreement with the truth, axioms, sanity.

    If interrupted, the same command continues where it stopped.
    """
    check_run(folder, root)
    check_output_folder(out, folder)
    part = check_distribution(shard, ray)
    limits = parse_limits(limit or [])
    check_names("EXPLAINERS", limits.keys() - {"truth"})
    names = None if explainers is None else [name.strip() for name in explainers.split(",")]
    check_asked(names, prototypes, every, limits, truth_budget, sizes)
    note(f"Loading {folder} ...")
    from protopfaith.devices import choose_device
    from protopfaith.evaluation import faithfulness as judge
    from protopfaith.evaluation import measure_share
    from protopfaith.training import Run

    with interruptible(lambda: f"What was measured is kept; go on with: {same_command()}"):
        run = Run(folder, root)
        asked: dict[str, Any] = {
            "prototypes": None if every else prototypes or PROTOTYPES,
            "explainers": names,
            "limits": limits,
            "players": players,
            "steps": steps,
            "budget": budget,
            "truth_budget": truth_budget,
            "sizes": sizes,
            "checked": checked,
            "autocast": autocast,
            "quantus": quantus,
            "device": choose_device(device),
            "seed": seed,
        }
        if shard is not None:
            left = measure_share(run, out, shard=part, **asked)
            if left:
                say(f"{left:,} measurements are left to other shards; the last one writes the page")
                return
        result = judge(run, out, ray=ray, **asked)
    console.print(result.table())
    say(f"The page: {result.page}; tables and pictures are beside it")


def check_asked(
    names: list[str] | None,
    prototypes: int | None,
    every: bool,
    limits: dict[str, int],
    truth_budget: int | None,
    sizes: int | None,
) -> None:
    """Raises if an option is for something that another one leaves out."""
    check_once(names or [])
    if every and prototypes is not None:
        raise ProtoPFaithError("--all and --prototypes do not go together; leave one of them out.")
    left_out = {"truth"} if truth_budget == 0 else set()
    if names is not None:
        left_out |= limits.keys() - {*names, "truth"}
    unused = sorted(limits.keys() & left_out)
    if unused:
        raise ProtoPFaithError(f"--limit names {unused[0]}, which is not measured; leave it out.")
    if sizes is not None and names is not None and "dasp" not in names:
        raise ProtoPFaithError("--sizes is for dasp, which is not among --explainers; leave it out.")
