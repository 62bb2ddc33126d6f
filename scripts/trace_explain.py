"""Counts the files and functions of the package that one `explain` goes through, by calling it.

`--walk` shows what the Explainer asks of the other files, one step after the other, and how much lies behind
each step. `--list` names all functions in the order in which they are called, with their callers. Both are
ways to read the code, too.

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
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import protopfaith
from protopfaith.explanation import Explainer
from protopfaith.training import Run

PACKAGE = str(Path(protopfaith.__file__).parent)
EXPLAINER = "explanation/explainer.py"  # where an explanation begins; what it calls are the steps
KEPT = ("explanations", "explained", "prototypes", "reference.json")  # what earlier commands left in a run
BUDGET = 256


class Trace:
    """Notes every function of the package that is called, by whom, and in which step it came first."""

    def __init__(self) -> None:
        self.callers: defaultdict[CodeType, set[str]] = defaultdict(set)
        self.steps: dict[CodeType, list[CodeType]] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        # Comprehensions and lambdas are parts of the function that they stand in, modules are no functions.
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            if code not in self.callers:
                self.steps.setdefault(step(frame), []).append(code)
            self.callers[code].add(caller(frame))

    def walk(self) -> dict[CodeType, list[CodeType]]:
        """What the Explainer called of other files, in order, and the functions that came with each."""
        return {code: functions for code, functions in self.steps.items() if file_of(code) != EXPLAINER}

    def files(self) -> dict[str, list[CodeType]]:
        """The functions of each file, in the order of their first calls."""
        found: dict[str, list[CodeType]] = {}
        for code in self.callers:
            found.setdefault(file_of(code), []).append(code)
        return found


def caller(frame: FrameType) -> str:
    """The nearest function of the package that a call comes from."""
    back = frame.f_back
    while back is not None and not back.f_code.co_filename.startswith(PACKAGE):
        back = back.f_back
    return "" if back is None else f"{Path(back.f_code.co_filename).stem}.{back.f_code.co_name}"


def step(frame: FrameType) -> CodeType:
    """What the Explainer called, on the way to this call: the outermost function that is not its own."""
    code, above = frame.f_code, frame.f_back
    while above is not None:
        if file_of(above.f_code) == EXPLAINER:
            break
        if above.f_code.co_filename.startswith(PACKAGE) and not above.f_code.co_name.startswith("<"):
            code = above.f_code
        above = above.f_back
    return code


def file_of(code: CodeType) -> str:
    """Its place in the package."""
    return code.co_filename.removeprefix(PACKAGE).lstrip("/\\")


def name_of(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # Python 3.11 knows the class, too


def traced(call: Callable[[], object]) -> Trace:
    """What a call goes through, in all threads."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return trace


def explained(run: Path, image: Path, *, warm: bool) -> Trace:
    """One explanation, of a copy of the run."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(run, Path(folder) / "run", ignore=shutil.ignore_patterns(*KEPT)))
        if not warm:
            return traced(lambda: Explainer(Run(copy)).explain(image, budget=BUDGET))
        explainer = Explainer(Run(copy))
        explainer.explain(image, budget=BUDGET)
        return traced(lambda: explainer.explain(image, budget=BUDGET))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("image", type=Path)
    parser.add_argument("--warm", action="store_true", help="the second explanation of one Explainer")
    parser.add_argument("--walk", action="store_true", help="the steps, and how many functions each one took")
    parser.add_argument("--list", action="store_true", help="name all functions")
    asked = parser.parse_args()
    trace = explained(asked.run, asked.image, warm=asked.warm)
    files = trace.files()
    for first, functions in trace.walk().items() if asked.walk else ():
        print(f"{len(functions):4}  {file_of(first)}: {name_of(first)}")
    for file, functions in files.items() if asked.list else ():
        print(f"{file} ({len(functions)})")
        for code in functions:
            print(
                f"    {name_of(code)}:{code.co_firstlineno} <- {', '.join(sorted(trace.callers[code])[:4])}"
            )
    print(f"{len(files)} files, {len(trace.callers)} functions")


if __name__ == "__main__":
    main()
