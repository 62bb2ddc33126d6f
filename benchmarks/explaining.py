"""How long a user waits for an explanation.

    python benchmarks/explaining.py RUN --root DATA --device cuda --autocast bfloat16,off --images 8
    python benchmarks/explaining.py --checkpoint model.safetensors --data cub --root DATA --device cuda

Everything is loaded first, and the maps on the source images of the prototypes that will be shown are made
first, as they are kept; both are timed apart. Then each image: the whole answer of `explain` (its file is
opened, the network looks at it, one game for all prototypes and the class, source maps from the cache), the
coarse answer on 7 x 7 windows alone, the report, and everything that the command line writes (report, figure,
data). The same number of plain forward passes in the same batches and number format stands beside it. The
first image is also a warm-up: it is shown, and left out of the medians if there are others.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from rich.table import Table
from torch import Tensor

from opening import add_network_options, device_name, make_console, open_network, plain_passes, spread, timed
from protopfaith.devices import choose_autocast
from protopfaith.explanation import Explainer, Explanation, Settings
from protopfaith.explanation.case_files import write_case
from protopfaith.explanation.decision import decide
from protopfaith.explanation.game import distances_and_outputs
from protopfaith.shapley import Game, Players
from protopfaith.show.wording.trust import relative_gap

TARGET = 1.5  # seconds, for a ResNet50 with 196 players on an H200
console = make_console()


@dataclass(frozen=True)
class Timing:
    """One image; seconds."""

    whole: float
    coarse: float
    report: float
    written: float
    plain: float
    evaluations: int
    precision: float
    gap: float
    rounding: float


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    device = torch.device(options.device)
    explainer, images = _open(options, device)
    for name in options.autocast.split(","):
        kind = choose_autocast(name, device)
        label = "full precision" if kind is None else str(kind).removeprefix("torch.")
        console.print(_table(_measure(explainer, images, options, kind), label, device))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_network_options(parser)
    add = parser.add_argument
    add("--images", type=int, default=8)
    add("--players", type=int, default=16, help="side of the windows in pixels")
    add("--budget", type=int, help="evaluations; by default what explain takes")
    add("--precision", type=float)
    add("--device", default="cpu")
    add("--autocast", default="auto", help="auto, off, bfloat16, float16, or several with commas between")
    add("--no-sources", action="store_true", help="without the prototypes' source images")
    return parser.parse_args(arguments)


def _open(options: argparse.Namespace, device: torch.device) -> tuple[Explainer, list[Path | Tensor]]:
    start = perf_counter()
    opened = open_network(options)
    explainer = Explainer(
        opened.run or opened.model,
        preprocessing=opened.preprocessing,
        images=opened.data,
        device=device,
    )
    digest = explainer.weights_hash
    test = opened.data.test
    images: list[Path | Tensor] = []
    for index in spread(options.images, len(test)):
        path = None if test.root is None else test.root / test.paths[index]
        images.append(path if path is not None and path.is_file() else test.image(index))
    console.print(
        f"{explainer.model.encoder_name}, {len(explainer.model.prototypes)} prototypes, weights "
        f"{digest[:8]}, loaded in {perf_counter() - start:.1f} s; {len(images)} test images; "
        f"{device_name(device)}"
    )
    return explainer, images


def _measure(
    explainer: Explainer,
    images: list[Path | Tensor],
    options: argparse.Namespace,
    kind: torch.dtype | None,
) -> list[Timing]:
    settings = Settings(options.players, options.precision, options.budget, autocast=kind)
    if not options.no_sources:
        _cache_sources(explainer, images, settings)
    timings = []
    for number, image in enumerate(images):
        timing = _one(explainer, image, settings, not options.no_sources)
        timings.append(timing)
        console.print(
            f"image {number}: {timing.whole:.2f} s ({timing.evaluations:,} evaluations, error "
            f"{timing.precision:.0%}, gap {timing.gap:.1%}), coarse answer {timing.coarse:.2f} s, "
            f"report {timing.report:.2f} s, plain passes {timing.plain:.2f} s",
            soft_wrap=True,
        )
    return timings


def _cache_sources(explainer: Explainer, images: list[Path | Tensor], settings: Settings) -> None:
    shown: dict[int, None] = {}
    for image in images:
        picture = explainer.open(image)
        case = decide(explainer.model, picture)
        shown |= dict.fromkeys(case.named)
    seconds = timed(lambda: explainer.sources.explain(list(shown), settings), explainer.device)[0]
    console.print(f"maps on the sources of {len(shown)} prototypes, made or read: {seconds:.1f} s")


def _one(explainer: Explainer, image: Path | Tensor, settings: Settings, sources: bool) -> Timing:
    device = explainer.device

    def asked() -> Explanation:
        return explainer.explain(image, settings=settings, sources=sources)

    whole, found = timed(asked, device)
    coarse = _coarse(explainer, image, settings, sources)
    with tempfile.TemporaryDirectory() as folder:
        report, _ = timed(lambda: found.report(Path(folder) / "report.html"), device)
        written, _ = timed(lambda: write_case(found, Path(folder) / "case"), device)
    every = [found.class_map, *(one.test for one in found.evidence)]
    gap = max(relative_gap(one) for one in every)
    plain = _plain(explainer, image, settings, found)
    rounding = found.settings["rounding"] or 0.0
    return Timing(whole, coarse, report, written, plain, found.evaluations, found.precision, gap, rounding)


def _coarse(explainer: Explainer, image: Path | Tensor, settings: Settings, sources: bool) -> float:
    """Seconds until the first answer: a coarse one where it is coarser than the real one."""
    seconds: list[float] = []
    start = perf_counter()
    explainer.explain(
        image,
        settings=settings,
        sources=sources,
        on_coarse=lambda _: seconds.append(perf_counter() - start),
    )
    return seconds[0] if seconds else perf_counter() - start


def _plain(explainer: Explainer, image: Path | Tensor, settings: Settings, found: Explanation) -> float:
    """Forward passes without any game, as many as the explanation took."""
    x = explainer.open(image).input.to(explainer.device)
    function = distances_and_outputs(explainer.fused)
    players = Players.windows(x.shape[-2:], int(str(settings.players)))
    game = Game(function, x, players, autocast=settings.autocast, check=False)
    return timed(plain_passes(game, found.evaluations), explainer.device)[0]


def _table(timings: list[Timing], label: str, device: torch.device) -> Table:
    used = timings[1:] or timings

    def middle(field: str) -> float:
        return median(getattr(one, field) for one in used)

    table = Table("what", "median", "slowest", title=f"seconds an image, {label}, {device_name(device)}")
    for field, name in (
        ("whole", "explanation"),
        ("coarse", "coarse answer, 7 x 7 windows"),
        ("report", "writing the report"),
        ("written", "writing report, figure and data"),
        ("plain", "as many plain forward passes"),
    ):
        table.add_row(name, f"{middle(field):.2f}", f"{max(getattr(one, field) for one in used):.2f}")
    table.add_section()
    table.add_row("explanation over plain passes", f"{median(one.whole / one.plain for one in used):.2f}", "")
    table.add_row("evaluations", f"{middle('evaluations'):,.0f}", "")
    table.add_row("plain passes a second", f"{median(o.evaluations / o.plain for o in used):,.0f}", "")
    for field, name in (
        ("precision", "standard error over value, worst map"),
        ("gap", "completeness gap over total, worst map"),
        ("rounding", "totals changed by rounding, worst map"),
    ):
        table.add_row(name, f"{middle(field):.1%}", f"{max(getattr(one, field) for one in used):.1%}")
    met = "met" if middle("whole") <= TARGET else "missed"
    table.caption = f"{TARGET} s an image for a ResNet50 with 196 players on an H200: {met} here."
    return table


if __name__ == "__main__":
    main()
