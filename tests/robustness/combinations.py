"""Options that are right alone and wrong together: one of them would be ignored, or mean something else."""

from __future__ import annotations

from typing import Any

from PIL import Image

from tests.robustness.harness import Case, Place

QUICK = ["--players", "12", "--budget", "16", "--no-sources"]


def explain(name: str, *options: Any, says: tuple[str, ...], good: bool = False) -> Case:
    return Case(
        f"explain with {name}",
        command=lambda p: ["explain", p.run, p.image, "--out", p / "out", *QUICK, *options],
        says=says,
        good=good,
    )


def masked(name: str, size: tuple[int, int], *, good: bool = False) -> Case:
    """A mask that covers the whole picture, of some size."""

    def command(place: Place) -> list[Any]:
        Image.new("L", size, 255).save(place / "mask.png")
        return [
            "explain",
            place.run,
            place.image,
            "--out",
            place / "out",
            *QUICK,
            "--mask",
            place / "mask.png",
        ]

    return Case(f"a mask {name}", command=command, says=() if good else ("mask", "proportions"), good=good)


def faithfulness(name: str, *options: Any, says: tuple[str, ...]) -> Case:
    return Case(
        f"faithfulness with {name}",
        command=lambda p: ["faithfulness", p.run, "--out", p / "out", *options],
        says=says,
    )


CASES = [
    explain("a second baseline that is the first", "--second-baseline", "zero", says=("second baseline",)),
    explain(
        "an option twice",
        *("--estimator", "dasp", "--option", "sizes=2", "--option", "sizes=3"),
        says=("sizes", "twice"),
    ),
    masked("of other proportions", (50, 10)),
    faithfulness("all and some prototypes", "--all", "--prototypes", "3", says=("--all", "--prototypes")),
    faithfulness("two limits of one", "--limit", "ours=1", "--limit", "ours=2", says=("ours", "twice")),
    faithfulness(
        "a limit of what is not measured",
        *("--explainers", "ours", "--limit", "dasp=1"),
        says=("--limit", "dasp"),
    ),
    faithfulness(
        "a limit of the truth that is left out",
        *("--truth-budget", "0", "--limit", "truth=1"),
        says=("--limit", "truth"),
    ),
    faithfulness("sizes without dasp", "--explainers", "ours", "--sizes", "3", says=("--sizes", "dasp")),
    Case(
        "evaluate alone, with nothing to compare",
        command=lambda p: ["evaluate", p.run, "--no-compare"],
        says=("--no-compare", "--data"),
    ),
]

GOOD = [
    explain("a budget that does not matter", "--estimator", "exact", says=(), good=True),
    masked("of the image's proportions", (80, 60), good=True),
    masked("as the network sees the image", (24, 24), good=True),
]
