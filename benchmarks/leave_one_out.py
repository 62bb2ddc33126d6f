"""Do the settings of `folder` carry over? Chosen on all data sets but one, judged on that one.

    python benchmarks/subsets.py --cub data/CUB_200_2011 --rsna rsna_224 --out subsets
    python benchmarks/subsets.py --cub data/CUB_200_2011 --rsna rsna_224 --out subsets --small
    python benchmarks/leave_one_out.py subsets/cub20 subsets/rsna10 subsets/digits [KEY=VALUE ...] --out OUT

Every folder is trained on with every setting below. For each folder, the setting with the best mean
validation balanced accuracy on the *others* is chosen (each folder's accuracies minus their mean, so that
hard data do not decide); its test accuracy stands beside that of the recipe as it is and of a linear probe.
Finished runs are kept: the same command goes on, and several processes may share the work by `--settings`
and by folders.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

from carry_over import DEVICE, probe_on_test, trained
from protopfaith.evaluation.prediction import classify_set
from protopfaith.training import Run

SETTINGS: dict[str, list[str]] = {
    "recipe": [],
    "slow": ["schedule.pretraining.learning_rate=1e-4", "optimization.multipliers.encoder=0.1"],
    "fast": ["schedule.pretraining.learning_rate=6e-4", "optimization.multipliers.encoder=1.0"],
    "plain": ["costs.places=0", "costs.diversity=0", "costs.individual=0"],
}
"""What could be otherwise: how much V moves, and what prototypes are asked beside cross-entropy."""

Accuracies = dict[str, dict[str, float]]  # folder -> setting -> validation balanced accuracy


def main() -> None:
    options = _options()
    overrides = [text for text in options.folders if "=" in text]
    folders = [Path(text) for text in options.folders if "=" not in text]
    runs: dict[tuple[str, str], Run] = {}
    for folder in folders:
        for setting in options.settings:
            place = options.out / setting / folder.name
            run, _ = trained(folder, place, [*overrides, *SETTINGS[setting]])
            runs[folder.name, setting] = run
            print(f"{folder.name}, {setting}: {run.result()['validation_balanced_accuracy']:.3f}", flush=True)
    if len(folders) > 2 and set(options.settings) == set(SETTINGS):
        print(table(runs, [folder.name for folder in folders]))


def table(runs: dict[tuple[str, str], Run], names: list[str]) -> str:
    found: Accuracies = {
        name: {key: float(runs[name, key].result()["validation_balanced_accuracy"]) for key in SETTINGS}
        for name in names
    }
    lines = [
        f"| data | {', '.join(SETTINGS)} (validation) | chosen by the others | its test | the recipe's test "
        "| probe's test |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in names:
        chosen = chosen_by_others(found, name)
        shown = ", ".join(f"{found[name][key]:.3f}" for key in SETTINGS)
        data = runs[name, "recipe"].data()
        judged = " | ".join(f"{_test(runs[name, key]):.3f}" for key in (chosen, "recipe"))
        probe = probe_on_test(runs[name, "recipe"], data)
        lines.append(f"| {name} | {shown} | {chosen} | {judged} | {probe:.3f} |")
    return "\n".join(lines)


def chosen_by_others(found: Accuracies, left_out: str) -> str:
    """The setting with the best mean advantage on all data but `left_out`."""
    others = [accuracies for name, accuracies in found.items() if name != left_out]
    return max(SETTINGS, key=lambda key: mean(each[key] - mean(each.values()) for each in others))


def _test(run: Run) -> float:
    data = run.data()
    return classify_set(run.model().to(DEVICE), data.test, data.preprocessing).balanced_accuracy


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", help="folders of classes, and overrides: KEY=VALUE")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
