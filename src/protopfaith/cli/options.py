"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from protopfaith.arguments import shown
from protopfaith.cli.app import note
from protopfaith.cli.names import check_baseline, check_device, check_estimator, check_split
from protopfaith.cluster import check_address
from protopfaith.errors import ProtoPFaithError
from protopfaith.shards import WHOLE, parse_shard
from protopfaith.specs import check_autocast, check_precision, parse_players


def checked(check: Callable[[Any], object]) -> Callable[[Any], Any]:
    """What Typer calls for an option: passes it on as it is, unless `check` raises; None is no value."""

    def callback(value: Any) -> Any:
        if value is not None:
            check(value)
        return value

    return callback


def check_options(texts: list[str] | None) -> list[str] | None:
    """Raises if an option of an estimator is no name with a value."""
    seen = set()
    for text in texts or []:
        key, equals, _ = text.partition("=")
        if not key or not equals:
            raise ProtoPFaithError(f"An option is a name and a value, such as sizes=8, not {text!r}.")
        if key in seen:
            raise ProtoPFaithError(f"The option {shown(key)} is given twice; give it once.")
        seen.add(key)
    return texts


def option_names(texts: list[str] | None) -> list[str]:
    """The names in options such as sizes=8."""
    return [text.partition("=")[0] for text in texts or []]


RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a trained run.")]
# Not readable: said of the one file by whoever reads it, not of the whole command before it begins.
ImageFiles = Annotated[list[Path], typer.Argument(readable=False, help="Image files, or folders of them.")]
Device = Annotated[
    str, typer.Option(callback=check_device, help="Where to compute: auto, cpu, cuda, cuda:1, ...")
]
Split = Annotated[str, typer.Option(callback=check_split, help="train, validation or test.")]
Root = Annotated[Path | None, typer.Option(help="The folder that holds the images.")]
MovedRoot = Annotated[
    Path | None, typer.Option("--root", help="The folder of the images, if not the one the recipe names.")
]
Anonymous = Annotated[
    bool,
    typer.Option(
        "--anonymous",
        help="Numbers instead of file names in results; a key file beside them says which is which.",
    ),
]
Frame = Annotated[
    str | None,
    typer.Option(
        help="Of DICOM files with several frames and TIFF files with several pages: which one, from 1, or "
        "all. That of a single file is also scan.dcm#3."
    ),
]
BatchSize = Annotated[int, typer.Option(min=1, max=1_000_000, help="Images in one forward pass.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of all random choices.")]
Window = Annotated[int | None, typer.Option(min=1, max=100_000, help="Side of the square regions in pixels.")]
Players = Annotated[
    str | None,
    typer.Option(
        callback=checked(parse_players),
        help="Regions: the side of square windows in pixels, or superpixels:N for about N. Default: 16, on a "
        "CPU larger ones where there would be more than 8 x 8.",
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        callback=checked(check_precision),
        help="Stop at this relative standard error: 0.05 is ±5%.",
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=2,
        max=10**12,
        help="Evaluations of the network at most, for the image and again for each source image that is new. "
        "Default: 1,024, on a GPU 12,288 (a source image: 512, on a GPU 12,288), or fewer where a map is "
        "precise to 0.1 before; with --precision alone as many as it takes, up to 327,680.",
    ),
]
Estimator = Annotated[
    str,
    typer.Option(
        callback=check_estimator,
        help="How Shapley values are estimated: default, {ESTIMATORS}; see docs/estimators.md.",
    ),
]
EstimatorOption = Annotated[
    list[str] | None,
    typer.Option(
        callback=check_options,
        metavar="KEY=VALUE",
        help="An option of the estimator's own, such as sizes=8 (dasp) or shrinkage=false (the default one). "
        "May be repeated.",
    ),
]
Autocast = Annotated[
    str,
    typer.Option(
        callback=checked(check_autocast),
        help="Number format of the network while regions are hidden: auto (bfloat16 on a GPU that has it, "
        "for speed), off, bfloat16, float16. Reports say what was used.",
    ),
]
Baseline = Annotated[
    str,
    typer.Option(
        callback=check_baseline,
        help="What replaces a hidden region: zero, blur, blur:8 (pixels), color:0.5, ...",
    ),
]


Shard = Annotated[
    str | None,
    typer.Option(
        metavar="I/N", help="Only the I-th of N shares; others may be done elsewhere, in any order."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(metavar="local|ADDRESS", help="On all CPUs or GPUs of this machine, or of a Ray cluster."),
]


def check_distribution(shard: str | None, ray: str | None) -> tuple[int, int]:
    """The shard; raises if options do not go together."""
    if ray is not None:
        check_address(ray)
    if shard is not None and ray is not None:
        raise ProtoPFaithError("--shard and --ray both spread the work; leave one of them out.")
    return WHOLE if shard is None else parse_shard(shard)


def parse_indices(text: str, what: str) -> list[int]:
    """Numbers with commas between."""
    try:
        numbers = [int(part) for part in text.split(",")]
        if any(abs(number) > 10**9 for number in numbers):
            raise ValueError
        return numbers
    except ValueError:
        raise ProtoPFaithError(f"{what} are numbers with commas between, not {shown(text)}.") from None


def parse_limits(texts: list[str]) -> dict[str, int]:
    """Names and numbers, such as dasp=20."""
    limits: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not number.isdecimal() or len(number) > 9:
            raise ProtoPFaithError(f"A limit is a name and a number, such as dasp=20, not {text!r}.")
        if name in limits:
            raise ProtoPFaithError(f"The limit of {shown(name)} is given twice; give it once.")
        limits[name] = int(number)
    return limits


def note_plan(estimator: str, budget: int | None, precision: float | None) -> None:
    """Says so if a budget or a precision is given to an estimator that has no use for it."""
    from protopfaith.shapley import DEFAULT_METHOD, ESTIMATORS

    given = [name for name, value in (("--budget", budget), ("--precision", precision)) if value is not None]
    name = DEFAULT_METHOD if estimator == "default" else estimator
    if given and not ESTIMATORS.traits(name).planned:
        note(
            f"{' and '.join(given)} {'does' if len(given) == 1 else 'do'} not matter to the estimator "
            f"{name!r}: it always takes as many evaluations as it needs."
        )


def parse_options(estimator: str, texts: list[str]) -> dict[str, Any]:
    """Values as YAML has them, of the types that the estimator's options have."""
    from protopfaith.shapley import DEFAULT_METHOD, ESTIMATORS
    from protopfaith.shapley.registration import typed_options
    from protopfaith.typed import Unparsed

    name = DEFAULT_METHOD if estimator == "default" else estimator
    options = {key: Unparsed(value) for key, _, value in (text.partition("=") for text in texts)}
    return typed_options(name, ESTIMATORS[name], options)
