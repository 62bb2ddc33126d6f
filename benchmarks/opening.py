"""What benchmarks share: a network from a run or a checkpoint, its images, the device's clock, and the plain
forward passes that everything is compared with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TypeVar

import torch
from rich.console import Console

from protopfaith.data import ImageData, Preprocessing, load_data
from protopfaith.network import ProtoPNet, load
from protopfaith.shapley import Game
from protopfaith.training import Run
from protopfaith.training.run import load_recipe_data

T = TypeVar("T")


def make_console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False)


@dataclass(frozen=True)
class Opened:
    """A network in evaluation mode with its images; `run` is None for a checkpoint."""

    model: ProtoPNet
    preprocessing: Preprocessing
    data: ImageData
    run: Run | None


def add_network_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", nargs="?", type=Path, metavar="RUN", help="the folder of a trained run")
    add("--checkpoint", type=Path, help="instead of a run: a network saved by protopfaith.network.save")
    add("--data", default="birds", help="with a checkpoint: the data set whose test images are explained")
    add("--root", type=Path, help="where the data set lies (for a run: if not where its recipe says)")


def open_network(options: argparse.Namespace) -> Opened:
    if options.run is not None:
        run = Run(options.run, options.root)
        return Opened(run.model(), run.preprocessing(), load_recipe_data(run.recipe(), run.root), run)
    if options.checkpoint is None:
        raise SystemExit("Give the folder of a run, or --checkpoint.")
    model, metadata = load(options.checkpoint)
    stated = metadata.get("preprocessing")
    data = load_data(options.data, root=options.root, size=tuple(stated["size"]) if stated else None)
    preprocessing = Preprocessing.from_dict(stated) if stated else data.preprocessing
    return Opened(model.eval(), preprocessing, data, None)


def spread(count: int, length: int) -> list[int]:
    """So many numbers below `length`, evenly spaced: images of many classes, always the same ones."""
    return torch.linspace(0, length - 1, min(count, length)).long().tolist()


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(
    work: Callable[[], T], device: torch.device, clock: Callable[[], float] = perf_counter
) -> tuple[float, T]:
    """Seconds until the device has done all of it, and the result."""
    synchronize(device)
    start = clock()
    result = work()
    synchronize(device)
    return clock() - start, result


def in_turns(
    works: Sequence[Callable[[], object]],
    device: torch.device,
    turns: int,
    clock: Callable[[], float] = perf_counter,
) -> list[list[float]]:
    """Seconds of all works, turn by turn: a drift of the machine's speed meets all of them alike."""
    return [[timed(work, device, clock)[0] for work in works] for _ in range(turns)]


def plain_passes(game: Game, count: int) -> Callable[[], None]:
    """Runs so many forward passes as the game would, in its batches and number format, but nothing else."""
    batch = game.image.expand(min(game.batch_size, count), *game.image.shape).contiguous()

    @torch.no_grad()
    def run() -> None:
        for start in range(0, count, len(batch)):
            with torch.autocast(game.device.type, dtype=game.autocast, enabled=game.autocast is not None):
                game.function(batch[: count - start])

    return run


def plain_rate(game: Game, repeats: int = 1) -> float:
    """Plain forward passes a second, in whole batches of some 2,048 images at most."""
    size = min(game.batch_size, 2048)
    count = size * max(1, min(2048 // size, 64 if game.device.type == "cuda" else 8))
    plain_passes(game, size)()  # warms up
    return count / median(timed(plain_passes(game, count), game.device)[0] for _ in range(repeats))


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.get_num_threads()} CPU threads"
