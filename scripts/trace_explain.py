"""Counts the files and functions of the package that one `explain` goes through, by calling it.

`--list` names them in the order in which they are called, with their callers, which is also a way to read the
code.

    python scripts/trace_explain.py runs/demo bird.png          # of a run that nobody has explained yet
    python scripts/trace_explain.py runs/demo bird.png --warm   # of an Explainer that has explained an image
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import protopfaith
from protopfaith.explanation import Explainer
from protopfaith.training import Run

PACKAGE = str(Path(protopfaith.__file__).parent)
KEPT = ("explanations", "explained", "prototypes", "reference.json")  # what earlier commands left in a run
BUDGET = 256


class Trace:
    """Notes every function of the package that is called, and by whom."""

    def __init__(self) -> None:
        self.callers: defaultdict[CodeType, set[str]] = defaultdict(set)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        # Comprehensions and lambdas are parts of the function that they stand in, modules are no functions.
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            self.callers[code].add(caller(frame))

    def files(self) -> dict[str, list[CodeType]]:
        """The functions of each file, in the order of their first calls."""
        found: dict[str, list[CodeType]] = {}
        for code in self.callers:
            found.setdefault(str(Path(code.co_filename).relative_to(PACKAGE)), []).append(code)
        return found


def caller(frame: FrameType) -> str:
    """The nearest function of the package that a call comes from."""
    back = frame.f_back
    while back is not None and not back.f_code.co_filename.startswith(PACKAGE):
        back = back.f_back
    return "" if back is None else f"{Path(back.f_code.co_filename).stem}.{back.f_code.co_name}"


def traced(run: Path, image: Path, *, warm: bool) -> Trace:
    """One explanation, of a copy of the run."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(run, Path(folder) / "run", ignore=shutil.ignore_patterns(*KEPT)))
        explainer = Explainer(Run(copy)) if warm else None
        if explainer is not None:
            explainer.explain(image, budget=BUDGET)
        trace = Trace()
        threading.setprofile(trace)
        sys.setprofile(trace)
        try:
            (explainer or Explainer(Run(copy))).explain(image, budget=BUDGET)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return trace


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("image", type=Path)
    parser.add_argument("--warm", action="store_true", help="the second explanation of one Explainer")
    parser.add_argument("--list", action="store_true", help="name all functions")
    asked = parser.parse_args()
    trace = traced(asked.run, asked.image, warm=asked.warm)
    files = trace.files()
    for file, functions in files.items() if asked.list else ():
        print(f"{file} ({len(functions)})")
        for code in functions:
            name = getattr(code, "co_qualname", code.co_name)  # Python 3.11 knows the class, too
            print(f"    {name}:{code.co_firstlineno} <- {', '.join(sorted(trace.callers[code])[:4])}")
    print(f"{len(files)} files, {len(trace.callers)} functions")


if __name__ == "__main__":
    main()
