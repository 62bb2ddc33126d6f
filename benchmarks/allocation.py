"""What it costs on a CPU that freed memory goes back to the system, and what keeping it saves.

python benchmarks/allocation.py

Processor time (user and system) of one core per image, so that other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from collections.abc import Callable

CASES = (
    ("ResNet50, 224 pixels, batches of 16, forward", "resnet50", 224, 16, False),
    ("ResNet18, 96 pixels, batches of 64, forward", "resnet18", 96, 64, False),
    ("EfficientNet-Lite0, 224 pixels, batches of 32, forward", "efficientnet_lite0", 224, 32, False),
    (
        "EfficientNet-Lite0, 224 pixels, batches of 32, forward and backward",
        "efficientnet_lite0",
        224,
        32,
        True,
    ),
)


def milliseconds(work: Callable[[], object], repeats: int, images: int) -> float:
    work()
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(repeats):
        work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1_000 * spent / repeats / images


def measure(number: int, repeats: int) -> float:
    import timm
    import torch

    torch.set_num_threads(1)
    _, name, size, batch, training = CASES[number]
    network = timm.create_model(name).to(memory_format=torch.channels_last).train(training)
    images = torch.randn(batch, 3, size, size).contiguous(memory_format=torch.channels_last)

    def work() -> None:
        with torch.set_grad_enabled(training):
            outputs = network(images)
        if training:
            outputs.square().mean().backward()
            network.zero_grad()

    return milliseconds(work, repeats, batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", type=int, help="one case, in this process (the others are started by it)")
    parser.add_argument("--keep", action="store_true", help="keep freed memory")
    arguments = parser.parse_args()
    if arguments.case is not None:
        if arguments.keep:
            from protopfaith.allocation import keep_freed_memory

            keep_freed_memory()
        print(measure(arguments.case, arguments.repeats))
        return
    print("| | as usual | freed memory kept |\n| --- | --- | --- |")
    for number, (title, *_) in enumerate(CASES):
        command = [sys.executable, __file__, "--case", str(number), "--repeats", str(arguments.repeats)]
        usual, kept = (
            float(subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout)
            for more in ([], ["--keep"])
        )
        print(f"| {title} | {usual:.1f} ms | {kept:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
