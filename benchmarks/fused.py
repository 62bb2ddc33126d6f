"""What fused kernels make of a forward pass, and how far that is from what the machine could do.

    python benchmarks/fused.py --encoder resnet18 --size 112                            # on a CPU
    python benchmarks/fused.py --device cuda --autocast bfloat16 --batch-size 512

Images per second of the network itself (channels last, in the number format of explanations) and of
`FusedProtoPNet`, which games are played on; both in turns, the medians. The limit is that of large matrix
products in the same number format, measured in the same run: convolutions of few channels cannot reach it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

import torch
from rich.table import Table
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from opening import device_name, in_turns, make_console
from protopfaith.network import FusedProtoPNet, ProtoPNet

console = make_console()


@torch.no_grad()
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--encoder", default="resnet50")
    add("--size", type=int, default=224)
    add("--classes", type=int, default=200)
    add("--batch-size", type=int, default=32)
    add("--repeats", type=int, default=5)
    add("--device", default="cpu")
    add("--autocast", choices=("bfloat16", "float16"))
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    device = torch.device(options.device)
    dtype = getattr(torch, options.autocast) if options.autocast else None
    model = ProtoPNet(options.encoder, options.classes, 5, 128).eval().to(device)
    model = model.to(memory_format=torch.channels_last)
    images = torch.randn(options.batch_size, 3, options.size, options.size, device=device)
    images = images.contiguous(memory_format=torch.channels_last)

    def passes(distances: Callable[[Tensor], Tensor]) -> Callable[[], Tensor]:
        def work() -> Tensor:
            with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
                return distances(images)

        return work

    works = [passes(model.distances), passes(FusedProtoPNet(model).distances)]
    start = perf_counter()
    plain, fused = (work() for work in works)
    console.print(
        f"prepared in {perf_counter() - start:.1f} s, largest difference "
        f"{float((plain - fused).abs().max()):.2g} of {float(plain.max()):.3g}"
    )
    turns = in_turns(works, device, options.repeats)
    rates = [options.batch_size / median(turn[i] for turn in turns) for i in range(2)]
    with FlopCounterMode(display=False) as counter:
        model.distances(images[:1])
    limit = _limit(device, dtype or torch.float32)
    table = Table("network", "images per second", "ratio", "TFLOP/s", "of the limit")
    for name, rate in zip(("itself", "fused"), rates, strict=True):
        speed = rate * counter.get_total_flops() / 1e12
        table.add_row(name, f"{rate:,.0f}", f"{rate / rates[0]:.2f}", f"{speed:.3g}", f"{speed / limit:.0%}")
    console.print(f"{device_name(device)}, {dtype or torch.float32}, limit {limit:.3g} TFLOP/s")
    console.print(table)


def _limit(device: torch.device, dtype: torch.dtype) -> float:
    """TFLOP/s of a large matrix product."""
    side = 8192 if device.type == "cuda" else 2048
    a = torch.randn(side, side, device=device, dtype=dtype)
    seconds = median(turn[0] for turn in in_turns([lambda: a @ a], device, 5))
    return 2 * side**3 / seconds / 1e12


if __name__ == "__main__":
    main()
