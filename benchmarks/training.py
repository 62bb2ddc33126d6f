"""Throughput of the training loop against the same network's bare forward and backward on random tensors.

    python benchmarks/training.py                                   # the demo's network
    python benchmarks/training.py --encoder resnet50 --classes 200 --size 224 --batch 80 --images 4000 \
        --precision bf16-mixed --accelerator cuda

Both are measured in one run, one after the other; compare their ratio, not the numbers of two runs.
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

from opening import timed
from protopfaith.data import ImageData, ImageSet, Preprocessing, Record
from protopfaith.training import Recipe, build_model, train
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


def make_recipe(arguments: argparse.Namespace) -> Recipe:
    """Joint epochs only, but for one epoch of F, which every plan ends with."""
    return recipe_from_dict(
        {
            "augmentation": {"rotation": 25.0, "shear": 15.0, "flip": 0.5},
            "model": {"encoder": arguments.encoder, "prototypes_per_class": 5},
            "optimization": {"batch_size": arguments.batch},
            "schedule": {
                "cycles": 1,
                "warmup": {"epochs": 0},
                "joint": {"epochs": arguments.epochs},
                "classifier": {"epochs": 1, "augment": False},
            },
            "compute": {
                "accelerator": arguments.accelerator,
                "precision": arguments.precision,
                "channels_last": True,
                "compile": arguments.compile,
                "resident": "never" if arguments.stream else "auto",
                "workers": arguments.workers,
                "checkpoint_seconds": 3600.0,
            },
        }
    )


def bare_rate(recipe: Recipe, data: ImageData, seconds: float) -> float:
    """Images per second of forward and backward alone, on one random batch."""
    compute = recipe.compute
    fabric = Fabric(accelerator=compute.accelerator, devices=1, precision=compute.precision)
    model = build_model(recipe, data).to(memory_format=torch.channels_last)
    if compute.compile:
        model.encoder.compile()
    model.classifier.requires_grad_(False)
    objective = fabric.setup(PrototypeObjective(model, recipe.costs))
    batch = recipe.optimization.batch_size
    images = torch.randn(batch, 3, *data.preprocessing.size, device=fabric.device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(len(data.classes), (batch,), device=fabric.device)

    def steps() -> None:
        for _ in range(STEPS):
            fabric.backward(objective(images, labels)["loss"])

    steps()  # warms up
    times: list[float] = []
    while sum(times) < seconds:
        times.append(timed(steps, fabric.device)[0])
    return len(times) * STEPS * batch / sum(times)


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
    parser.add_argument("--encoder", default="small")
    parser.add_argument("--classes", type=int, default=8)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--images", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--accelerator", default="auto")
    parser.add_argument("--precision", default="32-true")
    parser.add_argument("--compile", action="store_true", help="torch.compile the encoder, in both")
    parser.add_argument("--stream", action="store_true", help="load with workers, not all on the device")
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    recipe, data = make_recipe(arguments), random_data(arguments)
    rates = {"forward and backward": bare_rate(recipe, data, 10.0), "training loop": loop_rate(recipe, data)}
    table = Table(
        "", "images/s", "ratio", title=f"{arguments.encoder}, {arguments.size} px, {arguments.precision}"
    )
    for name, rate in rates.items():
        table.add_row(name, f"{rate:.0f}", f"{rate / rates['forward and backward']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
