"""What estimation costs on top of the forward passes, and what very many players need.

    python benchmarks/throughput.py                                   # a small network, on a CPU
    python benchmarks/throughput.py --device cuda --autocast bfloat16 --network resnet50
    python benchmarks/throughput.py --device cuda --autocast bfloat16 --network resnet50 --profile
    python benchmarks/throughput.py --device cuda --autocast bfloat16 --network resnet50 --many 1000000

The network is prepared as explanations prepare it: fused kernels for a ResNet50 (--no-fused leaves them
out), channels last on a GPU, in the estimation and in the plain passes alike. First: 2,048 evaluations for
1,000 outputs at once against 2,048 plain forward passes of the same network in the same batches, each the
median of several runs (on a CPU in processor time, which does not count other programs). With --many also:
as many evaluations for 112 x 112 players, in two halves, with the peak of memory and how well the halves
agree, for each of --many-estimators (--many-only leaves the first part out); every ten seconds a line says
how far it is and how that compares with plain passes. With --profile also: what the default does besides the
network's passes, in operations and in time on the device.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from opening import in_turns, plain_passes, plain_rate, timed
from protopfaith.correlation import pearson
from protopfaith.network import FusedProtoPNet, ProtoPNet
from protopfaith.shapley import DEFAULT_METHOD, Attribution, Game, Players, estimate
from small import convolutional


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--device", default="cpu")
    add("--autocast", choices=("bfloat16", "float16"))
    add("--network", default="small", choices=("small", "resnet50"))
    add("--outputs", type=int, default=1000)
    add("--evaluations", type=int, default=2048)
    add("--estimators", default=f"{DEFAULT_METHOD},owen,permutation")
    add("--repeats", type=int, default=3)
    add("--fused", action=argparse.BooleanOptionalAction, default=True, help="as explanations have it")
    add("--profile", action="store_true", help="what takes the time besides the passes")
    add("--many", type=int, default=0, help="evaluations for 112 x 112 players")
    add("--many-estimators", default=DEFAULT_METHOD, help="such as adaptive_owen,owen")
    add("--many-network", choices=("small", "resnet50"), help="as --network unless given")
    add("--many-only", action="store_true", help="not the 196 players")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    device = torch.device(options.device)
    dtype = getattr(torch, options.autocast) if options.autocast else None
    model = prepared(options.network, device, options)
    image = torch.randn(3, 224, 224, device=device)
    console = Console()
    if not options.many_only:
        game = Game(model, image, Players.windows((224, 224), 16), autocast=dtype)
        console.print(overhead(game, options))
        if options.profile:
            console.print(profiled(game, options.evaluations), soft_wrap=True)
    if options.many:
        if options.many_network:
            model = prepared(options.many_network, device, options)
        some = Game(lambda x: model(x)[:, :5], image, Players.windows((224, 224), 2), autocast=dtype)
        console.print(very_many(some, options.many, options.many_estimators.split(",")))


def prepared(name: str, device: torch.device, options: argparse.Namespace) -> Callable[[Tensor], Tensor]:
    """As explanations have it: in evaluation mode, with fused kernels, channels last on a GPU.

    Untrained: only its cost matters here, and that its output varies.
    """
    if name == "small":
        return convolutional(options.outputs, width=8).to(device).eval()
    model = ProtoPNet("resnet50", options.outputs // 5, 5).to(device).eval()
    if device.type == "cuda":
        model = model.to(memory_format=torch.channels_last)
    distances = FusedProtoPNet(model).distances if options.fused else model.distances
    return lambda images: distances(images.contiguous(memory_format=torch.channels_last))


def profiled(game: Game, budget: int) -> str:
    """Operations of the default estimator outside the game's function, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if game.device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    function = game.function
    game.function = lambda images: images.new_zeros(len(images), game.n_outputs) + images[:, 0, :1, 0].float()
    try:
        estimate(game, budget=budget)  # warms up
        with profile(activities=activities) as found:
            estimate(game, budget=budget)
        waits = waiting(game, budget)
    finally:
        game.function = function
    events = found.key_averages()
    launches = sum(event.count for event in events if "LaunchKernel" in event.key)
    order = "self_device_time_total" if game.device.type == "cuda" else "self_cpu_time_total"
    table = events.table(sort_by=order, row_limit=25)
    return f"{launches:,} kernel launches without the network\n{table}\n{waits}"


def waiting(game: Game, budget: int) -> str:
    """The lines at which the CPU waits for a GPU."""
    if game.device.type != "cuda":
        return ""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            estimate(game, budget=budget)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    places = Counter(f"{Path(one.filename).name}:{one.lineno}" for one in found)
    return "\n".join([f"waits for the device {len(found)} times", *(f"{n} {at}" for at, n in places.items())])


def overhead(game: Game, options: argparse.Namespace) -> Table:
    plain = plain_passes(game, options.evaluations)
    clock = perf_counter if game.device.type == "cuda" else process_time
    names, budget = options.estimators.split(","), options.evaluations
    spent = {name: estimate(game, name, budget=budget).evaluations for name in names}  # warms up as well
    plain()
    works = [plain, *(partial(estimate, game, name, budget=budget) for name in names)]
    base, *took = map(median, zip(*in_turns(works, game.device, options.repeats, clock), strict=True))
    table = Table("what", "evaluations", "s", "of plain time", title=f"{game.n_outputs} outputs at once")
    table.add_row(f"plain forward passes, batches of {game.batch_size}", f"{budget:,}", f"{base:.3f}", "1.00")
    for name, mine in zip(names, took, strict=True):
        table.add_row(name, f"{spent[name]:,}", f"{mine:.3f}", f"{mine / base * budget / spent[name]:.2f}")
    return table


def very_many(game: Game, evaluations: int, estimators: Sequence[str]) -> Table:
    plain = plain_rate(game, repeats=3)
    say(f"{game.players.description}: plain forward passes {plain:,.0f}/s, batches of {game.batch_size}")
    columns = ("estimator", "evaluations", "s", "x plain", "memory", "error", "halves", "reliable")
    table = Table(*columns, title=game.players.description)
    for name in estimators:
        if game.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(game.device)
        took, halves = timed(partial(two_halves, game, name, evaluations, plain), game.device)
        r = pearson(halves[0].values, halves[1].values).mean()
        spent = sum(half.evaluations for half in halves)
        agree = (f"{halves[0].precision:.2f}", f"{float(r):.3f}", f"{float(2 * r / (1 + r)):.3f}")
        row = (name, f"{spent:,}", f"{took:.1f}", f"{took * plain / spent:.2f}")
        row += (f"{peak(game.device) / 2**30:.2f} GiB", *agree)
        say(", ".join(f"{column} {entry}" for column, entry in zip(columns, row, strict=True)))
        table.add_row(*row)
    return table


def two_halves(game: Game, name: str, evaluations: int, plain: float) -> list[Attribution]:
    budget = evaluations // 2
    return [
        estimate(game, name, budget=budget, seed=seed, progress=Milestones(f"{name} {seed}", plain))
        for seed in (0, 1)
    ]


class Milestones:
    """A line of progress every ten seconds, so that a run that is cut off has said how far it came."""

    def __init__(self, name: str, plain: float):
        self.name, self.plain = name, plain
        self.start = self.said = perf_counter()

    def __call__(self, done: int, most: int) -> None:
        now = perf_counter()
        if now - self.said > 10 or done >= most:
            rate = done / (now - self.start)
            say(f"{self.name}: {done:,} of {most:,}, {rate:,.0f}/s, {self.plain / rate:.2f} of plain time")
            self.said = now


def say(line: str) -> None:
    print(line, flush=True)


def peak(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
