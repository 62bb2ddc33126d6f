"""Shares and workers, --shard and --ray of every command that has them; DICOM files for an archive."""

from __future__ import annotations

from typing import Any

from tests.robustness.bulk import bulk
from tests.robustness.harness import Case, Place
from tests.robustness.options import FAITHFUL, HUGE, QUICK, explain, on_run, train

COMMANDS = {"prototypes": QUICK[:4], "faithfulness": FAITHFUL}
WRONG_SHARDS = (" ", "0/2", "3/2", "1", "a/b", "1/0", "-1/2", f"1/{HUGE}", "1/2/3")


def a_fold(name: str, *options: str, **more: Any) -> Case:
    def arguments(place: Place) -> list[Any]:
        place.copy("tiny.yaml")
        return ["train", "tiny.yaml", "--root", place.images, "--out", "new", "--folds", "0,1", *options]

    return Case(f"train --folds: {name}", arguments, **more)


CASES: list[Case] = [
    explain("--dicom", says=("no DICOM file",)),
    explain("--dicom", "--anonymous", says=("leave --dicom or --anonymous out",)),
    bulk("--dicom as well", "--dicom"),
    *(
        on_run(command, *quick, "--shard", text, says=("such as 3/8",))
        for command, quick in COMMANDS.items()
        for text in WRONG_SHARDS
    ),
    *(
        on_run(command, *quick, *options)
        for command, quick in COMMANDS.items()
        for options in (["--ray", ""], ["--ray", " "], ["--ray", "local", "--shard", "1/2"])
    ),
    *(a_fold(f"--shard {text!r}", "--shard", text, says=("such as 3/8",)) for text in WRONG_SHARDS),
    a_fold("--ray without an address", "--ray", ""),
    a_fold("--ray and --shard", "--ray", "local", "--shard", "1/2"),
    a_fold("--ray and several devices", "compute.devices=2", "compute.accelerator=cpu", "--ray", "local"),
    train("--shard", "1/2", says=("--folds or --grid",)),
    train("--ray", "local", says=("--folds or --grid",)),
    *(bulk(f"--at-once {value!r}", "--at-once", value) for value in ("0", "-1", "65", HUGE, "x", "")),
    Case(
        "explain --at-once without --bulk",
        lambda p: ["explain", p.run, p.image, *QUICK, "--at-once", "2"],
        says=("--bulk",),
    ),
]
GOOD: list[Case] = [
    bulk("--at-once", "--at-once", "2", good=True),
    on_run("prototypes", *QUICK[:4], "--device", "cpu", "--shard", "1/1", good=True),
]
