"""All cases, and a program that counts how they end: python -m tests.robustness.corpus [NAME PART]."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.robustness import (
    again,
    arguments,
    bulk,
    combinations,
    conversion,
    datasets,
    findings,
    images,
    neighbors,
    oddities,
    options,
    outputs,
    python_api,
    radiographs,
    recipes,
    runs,
    spread,
    strangers,
)
from tests.robustness.harness import Case, Place, judge

MODULES = (
    again, options, recipes, images, runs, datasets, findings, outputs, conversion, python_api, oddities, bulk,
    spread, strangers, arguments, radiographs, neighbors, combinations,
)  # fmt: skip
BAD: list[Case] = [case for module in MODULES for case in module.CASES]
GOOD: list[Case] = [case for module in MODULES for case in getattr(module, "GOOD", [])]


def main() -> None:
    from tests.robustness.conftest import make_template

    logging.disable(logging.CRITICAL)
    wanted = [case for case in BAD + GOOD if all(word in case.name for word in sys.argv[1:])]
    counts: Counter[str] = Counter()
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template"
        template.mkdir()
        os.environ["PROTOPFAITH_CACHE"] = str(template / "cache")
        os.environ["PROTOPFAITH_STATE"] = str(template / "state")
        make_template(template)
        for number, case in enumerate(wanted):
            place = Place(Path(folder) / f"case{number}", template)
            place.folder.mkdir()
            try:
                outcome = judge(case, place)
            except Exception as error:  # the case itself is wrong
                outcome = type("Outcome", (), {"kind": "case", "text": repr(error), "seconds": 0.0})()
            counts[outcome.kind] += 1
            seconds += outcome.seconds
            if outcome.kind != "fine" or outcome.seconds > 5 or len(sys.argv) > 1:
                print(f"[{outcome.kind}] {case.name} ({outcome.seconds:.1f} s)\n{outcome.text}\n", flush=True)
    print(f"{len(wanted)} cases in {seconds:.0f} s: {dict(counts)}")


if __name__ == "__main__":
    main()
