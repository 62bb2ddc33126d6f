"""Does a removal curve cost more than its forward passes?

AOPC of some prototypes, each on an image of its own, beside as many plain forward passes in batches of the
same size. Both are timed in turns, so that a busy machine hits them alike; read the ratio (at most 1.2 is
wanted), not the times.

    python benchmarks/aopc.py                             # 100 prototypes, 100 steps, small encoder, CPU
    python benchmarks/aopc.py --encoder resnet50 --size 224 --device cuda --autocast
"""

from __future__ import annotations

import argparse
import statistics

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from opening import in_turns
from protopfaith.evaluation.metrics.removal import removal_curves, removal_ranks
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Players
from protopfaith.shapley.memory import fitting

CLASSES = 10


@torch.no_grad()
def plain(model: ProtoPNet, images: Tensor, passes: int, batch: int, autocast: torch.dtype | None) -> Tensor:
    """`passes` images through the network, `batch` at a time."""
    repeated = images[torch.arange(batch, device=images.device) % len(images)]
    found = []
    for start in range(0, passes, batch):
        with torch.autocast(images.device.type, dtype=autocast, enabled=autocast is not None):
            found.append(model.distances(repeated[: min(batch, passes - start)]))
    return torch.cat(found).cpu()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="small")
    parser.add_argument("--size", type=int, default=96, help="height and width of the images")
    parser.add_argument("--prototypes", type=int, default=100)
    parser.add_argument("--steps", type=int, default=100, help="T")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--autocast", action="store_true", help="bfloat16")
    options = parser.parse_args()
    torch.manual_seed(0)
    autocast = torch.bfloat16 if options.autocast else None
    model = ProtoPNet(options.encoder, CLASSES, -(-options.prototypes // CLASSES), 128)
    model = model.eval().to(options.device)
    images = torch.randn(options.prototypes, 3, options.size, options.size, device=options.device)
    batch = fitting(model.distances, images[:1])
    passes = options.prototypes * (options.steps + 1)
    windows = Players.windows(images.shape[2:], 16)

    def curves(regions: Players | None) -> Tensor:
        ranks = torch.stack([removal_ranks(image.mean(0), regions) for image in images])
        return removal_curves(
            model.distances,
            images,
            ranks,
            torch.arange(options.prototypes),
            torch.zeros_like(images),
            steps=options.steps,
            batch_size=batch,
            autocast=autocast,
        )

    runs = {
        "plain forward passes": lambda: plain(model, images, passes, batch, autocast),
        "AOPC, windows of 16 x 16": lambda: curves(windows),
        "AOPC, single pixels": lambda: curves(None),
    }
    console = Console()
    with console.status("measuring"):
        for run in runs.values():
            run()  # warms up
        turns = in_turns(list(runs.values()), images.device, options.repeats)
    table = Table(
        title=f"{options.prototypes} prototypes x {options.steps} steps, {options.encoder}, {options.size} x "
        f"{options.size}, batches of {batch}, {options.device}"
    )
    for column in ("", "seconds", "images / s", "ratio to plain"):
        table.add_column(column, justify="left" if not column else "right")
    for index, name in enumerate(runs):
        time_taken = statistics.median(turn[index] for turn in turns)
        ratio = statistics.median(turn[index] / turn[0] for turn in turns)
        table.add_row(name, f"{time_taken:.2f}", f"{passes / time_taken:,.0f}", f"{ratio:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
