"""Does the cost of a prototype network grow with its prototypes beyond what 1x1 convolutions cost?

For 10 to 5,000 prototypes, one training step (forward and backward) and one prediction of

- the encoder and Z alone, with no prototypes at all,
- the same with a 1x1 convolution to as many channels as there are prototypes, its minimum and F,
- the prototype network,

and for each the passes through the encoder, the time and the peak memory. Times are medians of interleaved
repetitions; read them as ratios within one run.

    python benchmarks/prototypes.py                    # a small encoder, CPU
    python benchmarks/prototypes.py --encoder resnet50 --size 224 --device cuda
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from opening import in_turns
from protopfaith.network import ProtoPNet, minimum_over_positions

CLASSES = 10
COUNTS = (10, 100, 1_000, 5_000)


class Convolution(nn.Module):
    """The yardstick: the same encoder and Z, then a 1x1 convolution, its minimum over positions and F."""

    def __init__(self, model: ProtoPNet):
        super().__init__()
        self.model = model
        self.convolution = nn.Conv2d(model.prototypes.shape[1], len(model.prototypes), 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.model.logits(minimum_over_positions(self.convolution(self.model.latent(x))))


class Latent(nn.Module):
    def __init__(self, model: ProtoPNet):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.latent(x)


class Passes:
    """Counts the forward and backward passes of a module."""

    def __init__(self, module: nn.Module):
        self.forward = self.backward = 0
        self._handle = module.register_forward_hook(self._count)

    def _count(self, _module: nn.Module, _inputs: object, output: Tensor) -> None:
        self.forward += 1
        if output.requires_grad:
            output.register_hook(self._count_backward)

    def _count_backward(self, _gradient: Tensor) -> None:
        self.backward += 1

    def __enter__(self) -> Passes:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.remove()


def train_step(model: nn.Module, x: Tensor) -> None:
    model.zero_grad(set_to_none=True)
    model(x).square().mean().backward()


@torch.no_grad()
def predict(model: nn.Module, x: Tensor) -> None:
    model(x)


def peak_bytes(run: Callable[[], None], device: torch.device) -> int:
    """The most memory held at once, beyond what was held before: torch's own account on a GPU; on a CPU the
    sum of allocations minus releases, as the profiler lists them."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, profile_memory=True) as profile:
        run()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def measure(count: int, options: argparse.Namespace, x: Tensor) -> list[str]:
    """One line of the table: the network with `count` prototypes beside the two yardsticks."""
    torch.manual_seed(0)
    model = ProtoPNet(options.encoder, CLASSES, count // CLASSES, options.channels)
    networks = [network.to(x.device) for network in (Latent(model), Convolution(model), model)]
    with Passes(model.encoder) as passes:
        train_step(model, x)
    line = [f"{count:,}", f"{passes.forward} + {passes.backward}"]
    for step in (train_step, predict):
        times = interleaved([lambda n=n, step=step: step(n, x) for n in networks], x.device, options.repeats)
        memory = [peak_bytes(lambda n=n, step=step: step(n, x), x.device) for n in networks]
        line += [f"{1e3 * times[2]:.0f} ms", *(f"{times[2] / other:.2f}" for other in times[:2])]
        line += [f"{memory[2] / 2**20:.0f} MiB", *(f"{memory[2] / other:.2f}" for other in memory[:2])]
    return line


def interleaved(runs: list[Callable[[], None]], device: torch.device, repeats: int) -> list[float]:
    """The median time of each, taken in turns; the first turn warms up."""
    turns = in_turns(runs, device, repeats + 1)[1:]
    return [statistics.median(column) for column in zip(*turns, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--encoder", default="small")
    parser.add_argument("--size", type=int, default=96, help="height and width of the images")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--channels", type=int, default=128, help="L")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    x = torch.rand(options.batch, 3, options.size, options.size, device=options.device)
    console = Console()
    with console.status("measuring"):
        lines = [measure(count, options, x) for count in COUNTS]
    console.print(
        f"{options.encoder}, {options.batch} images of {options.size} x {options.size}, "
        f"L = {options.channels}, {options.device}. P: prototypes; passes: forward + backward; "
        "/ none: against encoder and Z alone; / 1x1: against a 1x1 convolution."
    )
    for title, first in (("training", 2), ("inference", 8)):  # two tables: one would not fit a terminal
        table = Table("P", "passes", "time", "/ none", "/ 1x1", "memory", "/ none", "/ 1x1", title=title)
        for line in lines:
            table.add_row(*line[:2], *line[first : first + 6])
        console.print(table)


if __name__ == "__main__":
    main()
