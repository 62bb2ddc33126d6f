"""How many images a second `explain --bulk` explains, what Ray costs, and how far that would scale.

    python benchmarks/bulk.py RUN images                            # serial, then 1 and 2 workers of Ray
    python benchmarks/bulk.py RUN images --workers --memory 10000   # serial alone, then 10,000 images
    python benchmarks/bulk.py RUN images --budget 12288 --device cuda --autocast bfloat16 --workers
    python benchmarks/bulk.py --simulate 0.35 --seconds 120       # given seconds per image and to start

Ray's overhead is the time that workers spend on an image beyond what the image took. The simulation hands
1,000,000 images to up to 64 workers as the program does, with the measured seconds per image (each varied by
--spread), stragglers (--stragglers of the images take --slower times as long) and workers that die
(--deaths per worker and hour, each costing a start and the image at hand). Rows are written one by one.
"""

from __future__ import annotations

import argparse
import heapq
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from rich.table import Table

from opening import make_console
from protopfaith.explanation import Bulk, Explainer, Settings, explain_bulk
from protopfaith.explanation.many.inputs import list_items
from protopfaith.training import Run

console = make_console()
WORKERS = (1, 4, 8, 16, 32, 64)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    if options.run is None:
        if options.simulate is None:
            raise SystemExit("Give a run and images, or --simulate SECONDS.")
        console.print(scale_out(options, options.simulate, options.seconds))
        return
    settings = Settings(players=options.players, budget=options.budget, autocast=options.autocast)
    images = [Path(path) for path in options.images]
    with tempfile.TemporaryDirectory() as folder:
        each = measure(options, settings, images, Path(folder))
        if options.memory:
            console.print(memory(options, settings, images, Path(folder)))
    console.print(scale_out(options, each, options.seconds))


def measure(options: argparse.Namespace, settings: Settings, images: list[Path], folder: Path) -> float:
    """Prints the rates; returns seconds per image."""
    table = Table("", "images", "seconds", "images per second", "overhead per image", title=str(options.run))
    start = perf_counter()
    explainer = Explainer(Run(options.run), device=options.device)
    loading = perf_counter() - start
    first = [Path(list_items(images)[0].path)]
    _timed(explainer, first, folder / "warm", settings)  # what is imported and measured once
    seconds, serial = _timed(explainer, images, folder / "serial", settings)
    count = serial.manifest.images
    own = float(np.nanmean(serial.frame(["seconds"])["seconds"]))
    table.add_row(
        "serial", f"{count:,}", f"{seconds:.1f}", f"{count / seconds:.2f}", f"{_ms(seconds / count - own)}"
    )
    for workers in options.workers:
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
        _timed(explainer, first, folder / f"warm-{workers}", settings, ray="local")
        seconds, spread = _timed(explainer, images, folder / f"ray-{workers}", settings, ray="local")
        ray.shutdown()
        busy = float(np.nansum(spread.frame(["seconds"])["seconds"]))
        rate = f"{count / seconds:.2f}"
        name = f"Ray, {workers} worker{'s' if workers > 1 else ''} (with their start)"
        table.add_row(
            name, f"{count:,}", f"{seconds:.1f}", rate, f"{_ms((seconds * workers - busy) / count)}"
        )
        same = serial.table().drop_columns(["seconds"]).equals(spread.table().drop_columns(["seconds"]))
        console.print(f"{workers} workers: rows {'equal' if same else 'differ from'} those of the serial run")
    console.print(table)
    console.print(f"Loading the run: {loading:.1f} s, {torch.get_num_threads()} threads")
    options.writing = _writing(serial)
    console.print(f"Writing a row: {_ms(options.writing)}; one program writes those of all workers")
    return own


def _writing(bulk: Bulk, times: int = 50) -> float:
    row = bulk.table().slice(0, 1).to_pylist()[0]
    start = perf_counter()
    for _ in range(times):
        bulk.keep(row)
    return (perf_counter() - start) / times


def _timed(
    explainer: Explainer, images: list[Path], folder: Path, settings: Settings, ray: str | None = None
) -> tuple[float, Bulk]:
    start = perf_counter()
    found = explain_bulk(explainer, images, folder, settings=settings, ray=ray)
    return perf_counter() - start, found


def memory(options: argparse.Namespace, settings: Settings, images: list[Path], folder: Path) -> Table:
    """The peak of this process's memory while copies of one image are explained."""
    first = next(path for one in images for path in ([one] if one.is_file() else sorted(one.rglob("*.png"))))
    place = folder / "copies"
    place.mkdir()
    explainer = Explainer(Run(options.run), device=options.device)
    table = Table("images so far", "peak of memory, MB", title=f"{options.memory:,} small images")
    done = 0
    for goal in sorted({max(options.memory * part // 10, 1) for part in (1, 2, 5, 10)}):
        for number in range(done, goal):
            shutil.copy(first, place / f"{number:06d}.png")
        explain_bulk(explainer, [place], folder / f"memory-{goal}", settings=settings)
        shutil.rmtree(place)
        place.mkdir()
        done = goal
        table.add_row(f"{done:,}", f"{_peak():,.0f}")
    return table


def _peak() -> float:
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 1e6


def scale_out(options: argparse.Namespace, each: float, start: float) -> Table:
    """Simulated hours for many images on many workers."""
    table = Table(
        "workers",
        "hours",
        "workers busy",
        "deaths",
        title=f"{options.total:,} images at {each:.3g} s (simulated)",
    )
    for workers in WORKERS:
        seconds, busy, deaths = simulate(options, each, start, workers)
        table.add_row(str(workers), f"{seconds / 3600:.1f}", f"{busy / workers / seconds:.1%}", f"{deaths:,}")
    return table


def simulate(
    options: argparse.Namespace, each: float, start: float, workers: int
) -> tuple[float, float, int]:
    """Images to whoever is free first; in blocks, which end like single ones but are quicker to count."""
    random = np.random.default_rng(0)
    block = max(options.total // 100_000, 1)
    free = [start] * workers
    heapq.heapify(free)
    busy, deaths = 0.0, 0
    for _ in range(options.total // block):
        times = each * random.lognormal(-(options.spread**2) / 2, options.spread, block)
        times[random.random(block) < options.stragglers] *= options.slower
        took = float(times.sum())
        lost = int(random.poisson(options.deaths * took / 3600))
        busy, deaths = busy + took, deaths + lost
        heapq.heapreplace(free, free[0] + took + lost * (start + each))
    return max(*free, options.total * options.writing), busy, deaths


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("images", nargs="*")
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--players", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--autocast")
    parser.add_argument("--memory", type=int, default=0, help="images for the test of memory")
    parser.add_argument("--simulate", type=float, help="seconds per image, without measuring")
    parser.add_argument("--seconds", type=float, default=60.0, help="to start a worker")
    parser.add_argument("--total", type=int, default=1_000_000)
    parser.add_argument("--writing", type=float, default=0.005, help="seconds that writing a row takes")
    parser.add_argument("--spread", type=float, default=0.3)
    parser.add_argument("--stragglers", type=float, default=0.01)
    parser.add_argument("--slower", type=float, default=5.0)
    parser.add_argument("--deaths", type=float, default=0.05)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
