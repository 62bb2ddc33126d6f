"""Very many images: `explain --bulk`, and what comes of it, `report` and `summarize`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from protopfaith.cli.app import app, fail_for, interruptible, note, same_command, say
from protopfaith.cli.checks import check_image, check_output_file, check_output_folder, check_run
from protopfaith.cli.options import Device, check_distribution
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file
from protopfaith.shards import parse_shard
from protopfaith.writing import MANIFEST, PAGE, check_free

if TYPE_CHECKING:
    from protopfaith.explanation import Settings
    from protopfaith.training import Run

SHOWN_FAILURES = 20
Shard = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="With --bulk: only the I-th of N shares; others may be done elsewhere."),
]
Ray = Annotated[
    str | None,
    typer.Option(metavar="local|ADDRESS", help="With --bulk: on all CPUs or GPUs of a Ray cluster."),
]
Ship = Annotated[
    bool,
    typer.Option("--ship", help="With --ray: send run and images to machines that do not see these files."),
]
AtOnce = Annotated[
    int | None,
    typer.Option(min=1, max=64, help="With --bulk: images at a time in one process. Default: 2, on a CPU 1."),
]
BulkFolder = Annotated[Path, typer.Argument(metavar="OUT", help="What explain --bulk wrote.")]


def check_bulk(
    bulk: Path | None,
    shard: str | None,
    ray: str | None,
    ship: bool,
    at_once: int | None,
    *,
    instead: Mapping[str, object],
) -> None:
    """Raises if options do not go together."""
    if bulk is None:
        spread = {"--shard": shard, "--ray": ray, "--ship": ship, "--at-once": at_once}
        given = [name for name, value in spread.items() if value]
        if given or shard == "" or ray == "":
            raise ProtoPFaithError(
                f"{(given or ['--shard'])[0]} is for very many images; give --bulk FOLDER, too."
            )
        return
    check_output_folder(bulk, option="--bulk")
    check_free(bulk)
    for name, value in instead.items():
        if value is not None:
            raise ProtoPFaithError(f"{name} and --bulk do not go together; leave one of them out.")
    check_distribution(shard, ray)
    if ship and ray is None:
        raise ProtoPFaithError("--ship sends files to workers of Ray; give --ray, too.")


def write_bulk(
    run: Run,
    images: list[Path],
    out: Path,
    settings: Settings,
    target: str | None,
    versus: str | None,
    device: str,
    shard: str | None,
    ray: str | None,
    ship: bool,
    at_once: int | None,
    anonymous: bool,
) -> None:
    """`explain --bulk`."""
    from protopfaith.devices import choose_device
    from protopfaith.explanation import explain_bulk

    with interruptible(lambda: f"Finished images are kept in {out}; go on with the rest: {same_command()}"):
        done = explain_bulk(
            run,
            images,
            out,
            target=target,
            versus=versus,
            settings=settings,
            shard=(1, 1) if shard is None else parse_shard(shard),
            ray=ray,
            ship=ship,
            at_once=at_once,
            anonymous=anonymous,
            device=choose_device(device),
            progress=True,
        )
    parts, there = done.manifest.parts, len(done.finished_parts())
    left = "" if there == parts else f"; {parts - there} of {parts} parts are left to other shards"
    say(f"{done.manifest.images:,} images in {out}{left}")
    hard = done.hard()
    if hard:
        say(
            f"{hard:,} of them are hard: their maps did not reach the precision within the budget (reached "
            "is false); allow them more with --budget, or larger regions with --players"
        )
    failures = done.failures()
    for_people = [f"{name}: {why}" for name, why in failures[:SHOWN_FAILURES]]
    if len(failures) > SHOWN_FAILURES:
        for_people.append(f"{len(failures) - SHOWN_FAILURES:,} more images, see the column error of {out}")
    fail_for(for_people)


@app.command()
def report(
    bulk: BulkFolder,
    image: Annotated[str, typer.Argument(help="The image, by its name in the data set.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    run: Annotated[Path | None, typer.Option(help="The run, if it has moved.")] = None,
    file: Annotated[Path | None, typer.Option("--image", help="The image file, if it has moved.")] = None,
    device: Device = "cpu",
) -> None:
    """Write the report of one image that explain --bulk has explained."""
    check_is_bulk(bulk)
    check_output_file(out, ".html", *(one for one in (file,) if one is not None), beginning=PAGE)
    check_image(file)
    if run is not None:
        check_run(run)
    note(f"Loading {bulk} ...")
    from protopfaith.devices import choose_device
    from protopfaith.explanation import open_bulk
    from protopfaith.explanation.bulk.rebuild import rebuild

    found: Any = rebuild(open_bulk(bulk), image, run=run, file=file, device=str(choose_device(device)))
    say(str(found.report(out)))


def check_is_bulk(folder: Path) -> None:
    """Raises if there is no data set."""
    if not is_file(folder / MANIFEST):
        raise ProtoPFaithError(f"{folder} holds no data set of explanations; give what explain --bulk wrote.")


@app.command()
def summarize(
    bulk: BulkFolder,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("summary.html"),
    against: Annotated[
        Path | None, typer.Option(help="Another data set of the same network, to compare with.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option(help="Show images that stand out, where they can still be read, not only names.")
    ] = True,
) -> None:
    """Summarize very many explanations: what they have in common, and which images stand out."""
    for folder in (bulk, against):
        if folder is not None:
            check_is_bulk(folder)
    check_output_file(out, ".html", beginning=PAGE)
    note(f"Reading {bulk} ...")
    from protopfaith.explanation import open_bulk, summarize
    from protopfaith.show.summary import write_summary

    data = open_bulk(bulk)
    found = summarize(data, None if against is None else open_bulk(against))
    say(str(write_summary(out, found, data if pictures else None)))
