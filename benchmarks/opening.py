"""What benchmarks share: a network from a run or a checkpoint, its images, and the device's clock."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from protopfaith.data import ImageData, Preprocessing, load_data
from protopfaith.network import ProtoPNet, load
from protopfaith.training import Run
from protopfaith.training.run import load_recipe_data


def make_console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False)


@dataclass(frozen=True)
class Opened:
    """A network in evaluation mode with its images; ``run`` is None for a checkpoint."""

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
        return Opened(run.model(), run.preprocessing(), load_recipe_data(run.recipe, run.root), run)
    if options.checkpoint is None:
        raise SystemExit("Give the folder of a run, or --checkpoint.")
    model, metadata = load(options.checkpoint)
    stated = metadata.get("preprocessing")
    data = load_data(options.data, root=options.root, size=tuple(stated["size"]) if stated else None)
    preprocessing = Preprocessing.from_dict(stated) if stated else data.preprocessing
    return Opened(model.eval(), preprocessing, data, None)


def spread(count: int, length: int) -> list[int]:
    """So many numbers below ``length``, evenly spaced: images of many classes, always the same ones."""
    return torch.linspace(0, length - 1, min(count, length)).long().tolist()


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.get_num_threads()} CPU threads"
