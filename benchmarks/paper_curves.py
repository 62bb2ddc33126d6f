"""Validation accuracy of several trainings over their epochs, in one picture.

python benchmarks/paper_curves.py "CUB=runs/cub_paper" "RSNA=runs/rsna_paper" --out curves.png

Lines are the plain classifier and joint training, dots are networks whose prototypes are patches of training
images: these are what a run keeps.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

COLORS = ("#0b4fa8", "#d95f02", "#1b9e77", "#7570b3", "#666666")


def picture(runs: dict[str, Path]) -> Figure:
    figure = Figure(figsize=(8, 3.2), layout="constrained", dpi=130)
    axes = figure.subplots()
    for (name, folder), color in zip(runs.items(), COLORS, strict=False):
        metrics = pd.read_csv(folder / "metrics.csv")
        judged = metrics[metrics.validation_balanced_accuracy.notna()]
        projected = judged[judged.projected.astype(bool)]
        unprojected = judged[~judged.projected.astype(bool)]
        axes.plot(unprojected.epoch + 1, unprojected.validation_balanced_accuracy, color=color, alpha=0.35)
        kept = projected.groupby("cycle").last()
        axes.plot(kept.epoch + 1, kept.validation_balanced_accuracy, "o", color=color, label=name)
    axes.set(xlabel="epoch", ylabel="balanced accuracy (validation)", ylim=(0, 1.02))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="+", help="NAME=FOLDER")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    runs = {name: Path(folder) for name, _, folder in (text.partition("=") for text in arguments.runs)}
    picture(runs).savefig(arguments.out)


if __name__ == "__main__":
    main()
