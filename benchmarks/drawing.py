"""How long the birds take to draw and to load from the cache: `python benchmarks/drawing.py`."""

from __future__ import annotations

import os
import tempfile
from time import perf_counter, process_time

from rich.console import Console
from rich.table import Table

from protopfaith.data import load_data
from protopfaith.data.birds import draw_birds

COUNTS = {"train": 1000, "validation": 200, "test": 200}


def main() -> None:
    table = Table("what", "images", "wall s", "CPU s", "CPU ms per image")

    def measure(what: str, run: object) -> None:
        wall, cpu = perf_counter(), process_time()
        run()  # type: ignore[operator]
        wall, cpu = perf_counter() - wall, process_time() - cpu
        count = sum(COUNTS.values())
        table.add_row(what, str(count), f"{wall:.2f}", f"{cpu:.2f}", f"{1000 * cpu / count:.2f}")

    with tempfile.TemporaryDirectory() as folder:
        os.environ["PROTOPFAITH_CACHE"] = folder
        measure("draw", lambda: draw_birds(COUNTS))
        measure("first load (draw and keep)", lambda: load_data("birds"))
        measure("later load (mapped)", lambda: load_data("birds"))
    Console().print(table)


if __name__ == "__main__":
    main()
