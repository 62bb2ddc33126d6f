"""How long do reports, figures and lists of cases take to draw? No network is evaluated while the clock runs.

    python benchmarks/reporting.py [--size 224] [--prototypes 5] [--players 16] [--repeats 5]

The case has the size of one with a ResNet50: windows of 16 pixels on 224 x 224, five prototypes, their source
images, and a photograph of 500 x 400. The first report of a process also pays for imports and templates.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from rich.table import Table

from opening import make_console
from protopfaith.explanation import Explainer, Explanation, SourceSide
from protopfaith.network import ProtoPNet
from protopfaith.show.index import write_index

console = make_console()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=224, help="pixels of the network's input")
    parser.add_argument("--prototypes", type=int, default=5, help="per class")
    parser.add_argument("--players", default="16", help="side of windows in pixels, or superpixels:60")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    case = make_case(options.size, options.prototypes, options.players)
    table = Table("what", "first (s)", "then (s)", "size (kB)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case.save(folder / "case" / "explanation")
        for what, path, draw in (
            ("report", folder / "report.html", case.report),
            ("index of one case", folder / "index.html", lambda to: write_index(to, [folder / "case"], [])),
            ("figure, PNG at 300 dpi", folder / "figure.png", lambda to: case.figure(path=to)),
        ):
            first, *rest = (timed(draw, path) for _ in range(max(options.repeats, 2)))
            row = (f"{first:.2f}", f"{min(rest):.2f}", f"{path.stat().st_size / 1000:.0f}")
            table.add_row(what, *row)
    console.print(table)


def timed(draw: Callable[[Path], object], path: Path) -> float:
    begin = time.perf_counter()
    draw(path)
    return time.perf_counter() - begin


def make_case(size: int, prototypes: int, players: str) -> Explanation:
    """An explanation of noise by a network that has learned nothing; what it costs to draw is the same."""
    torch.manual_seed(0)
    network = ProtoPNet("small", [f"class {i}" for i in range(20)], prototypes, 16).eval()
    found = Explainer(network).explain(
        smooth(size, size).float() / 255, players=players, budget=512, sources=False, name="photograph.jpg"
    )
    evidence = tuple(
        replace(one, source_side=_side(found, place)) for place, one in enumerate(found.evidence)
    )
    return replace(found, evidence=evidence, original=smooth(400, 500))


def _side(found: Explanation, place: int) -> SourceSide:
    one = found.evidence[place]
    pixels = smooth(*found.pixels.shape[1:])
    return SourceSide(f"train/{place}.jpg", pixels, one.test, one.activation, one.box, 512, found.precision)


def smooth(height: int, width: int) -> torch.Tensor:
    """Smooth noise, which compresses about as well as a photograph: uint8, 3 x height x width."""
    rough = torch.rand(1, 3, max(height // 4, 1), max(width // 4, 1))
    fine = torch.nn.functional.interpolate(rough, (height, width), mode="bicubic").clamp(0, 1)
    return (255 * fine[0]).to(torch.uint8)


if __name__ == "__main__":
    main()
