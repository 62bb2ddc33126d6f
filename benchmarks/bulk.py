"""How many images a second `explain --bulk` explains, what Ray costs, and how far that would scale.

    python benchmarks/bulk.py RUN images                            # serial, then 1 and 2 workers of Ray
    python benchmarks/bulk.py RUN images --workers --memory 10000   # serial alone, then 10,000 images
    python benchmarks/bulk.py RUN images --device cuda --autocast bfloat16 --workers --at-once 1 2 4
    python benchmarks/bulk.py --simulate 0.35 --seconds 120       # given seconds per image and to start

--limit N takes N of the images, evenly spaced. --at-once: how many one process explains at the same time.
Ctrl-C ends the present way early; what is told then is of the parts that were finished.
Ray's overhead is the time that workers spend on an image beyond what the image took. The simulation hands
1,000,000 images to up to 64 workers as the program does, with the measured seconds per image (each varied by
--spread), stragglers (--stragglers of the images take --slower times as long) and workers that die
(--deaths per worker and hour, each costing a start and the image at hand). Rows are written one by one.
"""

from __future__ import annotations

import argparse
import heapq
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from rich.table import Table

from opening import make_console, spread
from protopfaith.explanation import Bulk, Explainer, Settings, explain_bulk, open_bulk
from protopfaith.explanation.bulk.inputs import list_items
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
    settings = Settings(
        players=options.players,
        budget=options.budget,
        precision=options.precision,
        autocast=options.autocast,
    )
    images = chosen([Path(path) for path in options.images], options.limit)
    with tempfile.TemporaryDirectory() as folder:
        each = measure(options, settings, images, Path(folder))
        if options.memory:
            console.print(memory(options, settings, images, Path(folder)))
    console.print(scale_out(options, each, options.seconds))


def chosen(images: list[Path], limit: int) -> list[Path]:
    """All, or so many of them."""
    if not limit:
        return images
    every = list_items(images)
    return [Path(every[place].path) for place in spread(limit, len(every))]


def measure(options: argparse.Namespace, settings: Settings, images: list[Path], folder: Path) -> float:
    """Prints the rates; returns seconds per image."""
    columns = ["images", "seconds", "images per second", "overhead per image", "evaluations", "mean error"]
    table = Table("", *columns, "95% of errors below", "reached", title=str(options.run))
    start = perf_counter()
    explainer = Explainer(Run(options.run, options.root), device=options.device)
    loading = perf_counter() - start
    first = [Path(list_items(images)[0].path)]
    took, _ = _timed(explainer, first, folder / "warm", settings)  # what is imported and measured once
    console.print(f"the run was loaded in {loading:.1f} s, the first image took {took:.1f} s")
    for at_once in options.at_once:
        seconds, found = _timed(explainer, images, folder / f"serial-{at_once}", settings, at_once=at_once)
        count = found.table(["seconds"]).num_rows
        own = float(np.nanmean(found.frame(["seconds"])["seconds"]))
        name = "serial" if at_once == 1 else f"{at_once} at a time"
        over = _ms(seconds / count - own / at_once)
        table.add_row(name, f"{count:,}", f"{seconds:.1f}", f"{count / seconds:.2f}", over, *_quality(found))
        console.print(f"{name}: {count:,} images in {seconds:.1f} s")
        if at_once == options.at_once[0]:
            serial, each = found, seconds / count
        else:
            console.print(f"{name}: {_difference(serial, found)}")
    os.environ.setdefault("RAY_worker_niceness", "0")  # as patient as the serial run
    for workers in options.workers:
        import ray

        ray.init(
            "local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error"
        )
        _timed(explainer, first, folder / f"warm-{workers}", settings, ray="local")
        seconds, spread_out = _timed(explainer, images, folder / f"ray-{workers}", settings, ray="local")
        ray.shutdown()
        busy = float(np.nansum(spread_out.frame(["seconds"])["seconds"]))
        rate = f"{count / seconds:.2f}"
        name = f"Ray, {workers} worker{'s' if workers > 1 else ''} (with their start)"
        over = _ms((seconds * workers - busy) / count)
        table.add_row(name, f"{count:,}", f"{seconds:.1f}", rate, over, *_quality(spread_out))
        console.print(f"{workers} workers: {_difference(serial, spread_out)}")
    console.print(table)
    console.print(f"Loading the run: {loading:.1f} s, {torch.get_num_threads()} threads")
    options.writing = _writing(serial)
    console.print(f"Writing a row: {_ms(options.writing)}; one program writes those of all workers")
    return each


def _difference(first: Bulk, second: Bulk) -> str:
    """How far the rows are from those of the first way."""
    one, two = (bulk.table().drop_columns(["seconds"]) for bulk in (first, second))
    if one.equals(two):
        return "rows equal those of the serial run"
    pairs = zip(one["values"].to_pylist(), two["values"].to_pylist(), strict=True)
    parts = [(np.array(a), np.array(b)) for a, b in pairs if a is not None and b is not None]
    worst = max((float(np.abs(a - b).max() / np.ptp(a)) for a, b in parts), default=float("nan"))
    return f"values differ from those of the serial run by {worst:.1e} of their range at most"


def _quality(bulk: Bulk) -> list[str]:
    frame = bulk.frame(["evaluations", "precision", "reached"]).dropna()
    error = frame["precision"]
    found = [f"{frame['evaluations'].mean():,.0f}", f"{error.mean():.3f}", f"{error.quantile(0.95):.3f}"]
    return [*found, f"{frame['reached'].astype(float).mean():.0%}"]


def _writing(bulk: Bulk, times: int = 50) -> float:
    row = bulk.table().slice(0, 1).to_pylist()[0]
    bulk.part(0).unlink()  # rows of finished parts are not written again
    positions = list(bulk.positions(0))[:times]
    start = perf_counter()
    for position in positions:
        bulk.keep(row | {"position": position})
    return (perf_counter() - start) / len(positions)


def _timed(
    explainer: Explainer, images: list[Path], folder: Path, settings: Settings, **how: Any
) -> tuple[float, Bulk]:
    start = perf_counter()
    try:
        found = explain_bulk(explainer, images, folder, settings=settings, **how)
    except KeyboardInterrupt:
        found = open_bulk(folder)
        if not found.finished_parts():
            raise
    return perf_counter() - start, found


def memory(options: argparse.Namespace, settings: Settings, images: list[Path], folder: Path) -> Table:
    """The peak of this process's memory while copies of one image are explained."""
    first = next(path for one in images for path in ([one] if one.is_file() else sorted(one.rglob("*.png"))))
    place = folder / "copies"
    place.mkdir()
    explainer = Explainer(Run(options.run, options.root), device=options.device)
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
    parser.add_argument("--root", type=Path, help="of the run's images, if not where its recipe says")
    parser.add_argument("--at-once", nargs="*", type=int, default=[1])
    parser.add_argument("--limit", type=int, default=0, help="so many of the images, evenly spaced")
    parser.add_argument("--players", type=int)
    parser.add_argument("--precision", type=float)
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
