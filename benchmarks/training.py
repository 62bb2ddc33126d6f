"""Throughput of the training loop against the same network's bare forward and backward on random tensors.

    python benchmarks/training.py                                   # the demo's network
    python benchmarks/training.py --recipe cub_quick --encoder resnet50 --classes 200 --size 224 --batch 64 \
        --images 4096 --precision bf16-mixed --accelerator cuda

On a GPU there are two of each: with the encoder's step as CUDA graphs, and without (compute.graphs=never).
All are measured in one run, one after the other; compare their ratios, not the numbers of two runs.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from lightning.fabric import Fabric
from rich.console import Console
from rich.table import Table
from torch import nn

from opening import timed
from protopfaith.data import ImageData, ImageSet, Preprocessing, Record
from protopfaith.network import ProtoPNet, output_channels
from protopfaith.training import Recipe, build_model, load_recipe, train
from protopfaith.training.graphs import WORTHWHILE, GraphedEncoder, can_be_captured
from protopfaith.training.objectives import PrototypeObjective
from protopfaith.training.recipe import recipe_from_dict

STEPS = 5  # between two looks at the clock: it makes a GPU wait


def random_images(count: int, classes: int, size: int) -> ImageSet:
    pixels = np.random.default_rng(0).integers(0, 256, (count, 3, size, size), dtype=np.uint8)
    records = [Record(f"{index}", index % classes, f"{index}") for index in range(count)]
    return ImageSet(pixels, records, [f"class {label}" for label in range(classes)])


def random_data(arguments: argparse.Namespace) -> ImageData:
    images = random_images(arguments.images, arguments.classes, arguments.size)
    empty = images.subset([])
    preprocessing = Preprocessing((arguments.size, arguments.size))
    return ImageData(images, empty, empty, images.classes, "random", preprocessing)


def make_recipe(arguments: argparse.Namespace, graphs: str = "auto") -> Recipe:
    """Joint epochs only, but for one epoch of F, which every plan ends with, and one of the plain classifier
    for recipes whose prototypes learn from it."""
    values = {"augmentation": {"rotation": 25.0, "shear": 15.0, "flip": 0.5}}
    if arguments.recipe is not None:
        values = load_recipe(arguments.recipe).to_dict()
    changes = {
        "data.name": "birds",
        "model.encoder": arguments.encoder,
        "model.weights": "null",
        "model.initialization": "random",
        "model.prototypes_per_class": 5,
        "optimization.batch_size": arguments.batch,
        "schedule.cycles": 1,
        "schedule.images": "null",
        "schedule.pretraining.epochs": 0 if arguments.recipe is None else 1,
        "schedule.warmup.epochs": 0,
        "schedule.joint.epochs": arguments.epochs,
        "schedule.classifier.epochs": 1,
        "schedule.classifier.augment": "false",
        "compute.accelerator": arguments.accelerator,
        "compute.precision": arguments.precision,
        "compute.channels_last": "true",
        "compute.compile": arguments.compile,
        "compute.graphs": graphs,
        "compute.resident": "never" if arguments.stream else "auto",
        "compute.workers": arguments.workers,
        "compute.checkpoint_seconds": 3600,
    }
    return recipe_from_dict(values, [f"{key}={value}" for key, value in changes.items()])


def bare_rate(recipe: Recipe, data: ImageData, seconds: float) -> float:
    """Images per second of forward and backward alone, on one random batch, the encoder captured or not."""
    compute = recipe.compute
    fabric = Fabric(accelerator=compute.accelerator, devices=1, precision=compute.precision)
    model = build_model(recipe, data).to(memory_format=torch.channels_last)
    if compute.compile:
        model.encoder.compile()
    model.classifier.requires_grad_(False)
    objective = fabric.setup(make_objective(model, recipe))
    graphs = GraphedEncoder(model.encoder, print, WORTHWHILE if captured(recipe) else 0)
    batch = recipe.optimization.batch_size
    images = torch.randn(batch, 3, *data.preprocessing.size, device=fabric.device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(len(data.classes), (batch,), device=fabric.device)

    def steps() -> None:
        for _ in range(STEPS):
            objective.zero_grad()
            fabric.backward(objective(images, labels)["loss"])

    times: list[float] = []
    with graphs.replaying():
        steps()  # warms up
        while sum(times) < seconds:
            times.append(timed(steps, fabric.device)[0])
    graphs.close()
    return len(times) * STEPS * batch / sum(times)


def make_objective(model: ProtoPNet, recipe: Recipe) -> PrototypeObjective:
    """That of the joint stage."""
    classes = len(model.class_names)
    head = nn.Linear(output_channels(model.encoder, model.in_channels), classes)
    return PrototypeObjective(
        model,
        recipe.costs,
        head if recipe.costs.companion else None,
        torch.ones(classes) if recipe.costs.balanced else None,
        nn.Parameter(torch.zeros(())) if recipe.model.logit_scale else None,
    )


def captured(recipe: Recipe) -> bool:
    """Whether the training loop would capture the encoder's step."""
    on_gpu = torch.cuda.is_available() and recipe.compute.accelerator in ("auto", "cuda", "gpu")
    device = torch.device("cuda" if on_gpu else "cpu")
    compiled = recipe.compute.compile
    return recipe.compute.graphs == "auto" and can_be_captured(device, 1, compiled=compiled)


def loop_rate(recipe: Recipe, data: ImageData) -> float:
    """Images per second of the joint stage, all included but the first epoch (which warms up)."""
    with tempfile.TemporaryDirectory() as folder:
        table = train(recipe, Path(folder) / "run", data=data, progress=False).metrics()
    joint = table[table.stage == "joint"].iloc[1:]
    batch = recipe.optimization.batch_size
    return len(joint) * (len(data.train) // batch * batch) / joint.seconds.sum()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", help="whose costs and augmentation to train with")
    parser.add_argument("--encoder", default="small")
    parser.add_argument("--classes", type=int, default=8)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--images", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=8.0, help="of bare passes")
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--precision", default="32-true")
    parser.add_argument("--compile", action="store_true", help="torch.compile the encoder, in both")
    parser.add_argument("--stream", action="store_true", help="load with workers, not all on the device")
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    data = random_data(arguments)
    rates = {}
    for graphs in ("never", "auto"):
        recipe = make_recipe(arguments, graphs)
        if graphs == "never" and not captured(make_recipe(arguments)):
            continue  # it would be the same
        how = f", compute.graphs={graphs}"
        rates[f"forward and backward{how}"] = bare_rate(recipe, data, arguments.seconds)
        rates[f"training loop{how}"] = loop_rate(recipe, data)
    bare = rates["forward and backward, compute.graphs=auto"]
    title = f"{arguments.encoder}, {arguments.size} px, batches of {arguments.batch}, {arguments.precision}"
    table = Table("", "images/s", "of the last bare passes", title=title)
    for name, rate in rates.items():
        table.add_row(name, f"{rate:.0f}", f"{rate / bare:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
