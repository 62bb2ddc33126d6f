"""The paper's tables in Markdown, from what `protopfaith.evaluation.faithfulness` found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from opening import device_name
from paper_numbers import PaperModel, paper_model
from protopfaith.evaluation import ExplainerResult, Faithfulness
from protopfaith.evaluation.metrics.removal import paper_aopc
from protopfaith.training import Run

NAMES = {
    "protopnet": "ProtoPNet's map",
    "protopnet_crop": "ProtoPNet's crop",
    "dasp": "DASP (paper)",
    "moment_path": "moment path",
    "ours": "**ours**",
    "owen": "plain Owen sampling",
    "integrated_gradients": "integrated gradients",
    "gradient_shap": "GradientShap",
    "saliency": "saliency",
    "smoothgrad": "SmoothGrad",
    "random": "random",
}


def markdown(found: Faithfulness, run: Run, options: argparse.Namespace, test: float) -> str:
    """Everything that docs/results.md needs of one model."""
    recipe = run.recipe()
    paper = paper_model(recipe.data.name, recipe.model.encoder)
    n, steps = len(found.prototypes), found.steps
    denominator = found.classes + found.prototypes_per_class + steps - 1
    device, dtype = device_name(torch.device(options.device)), options.autocast
    parts = [
        f"### {paper.name if paper else run.folder.name}",
        f"{recipe.model.encoder} on {recipe.data.name}, {device}, "
        f"{'no autocast' if dtype is None else f'autocast to {dtype}'}, seed {options.seed}, "
        f"{options.budget:,} evaluations an image for those that sample, {options.sizes} sizes for DASP, "
        f"{found.players}. n: prototypes, each on its own source image. ±: standard error over prototypes.",
        explainers_table(found),
    ]
    common = found.common
    if common is not None:
        parts += [f"All explainers on the {len(common.prototypes)} prototypes that they share:"]
        parts += [explainers_table(common)]
    normalizer = f"The paper's normalizer is C + K + T - 1 = {denominator:g} (T = {steps}), n = {n} here."
    if paper is not None:
        normalizer += (
            f" The paper sums over {paper.prototypes} prototypes and does not state its T, so of its AOPC "
            "only the ratio of two explanations compares with ours."
        )
    parts += [
        normalizer,
        beside_the_paper(found, paper, run, test),
        "\n".join(f"- {sentence}" for sentence in found.remarks()[1:]),
    ]
    return "\n\n".join(parts)


def explainers_table(found: Faithfulness) -> str:
    """One line for each explainer, the best AOPC first."""
    header = (
        "explainer",
        "n",
        "AOPC to 20%",
        "AOPC to 100%",
        "paper's normalizer",
        "own units, 20%",
        "own units, 100%",
        "Pearson",
        "Spearman",
        "completeness gap",
        "s / image",
    )
    lines = [_line(header), "| --- " * len(header) + "|"]
    for result in sorted(found.results, key=lambda r: found.row(r)["aopc_20"]):
        row, each = found.row(result), result.per_prototype()
        lines.append(
            _line(
                (
                    NAMES.get(result.name, result.name),
                    str(len(result.prototypes)),
                    f"{row['aopc_20']:.3f} ± {_standard_error(each['aopc_20']):.3f}",
                    f"{row['aopc_100']:.3f} ± {_standard_error(each['aopc_100']):.3f}",
                    _number(row["aopc_paper"], ".3f"),
                    f"{row['aopc_20_own']:.3f}",
                    f"{row['aopc_100_own']:.3f}",
                    _number(row.get("pearson"), ".3f"),
                    _number(row.get("spearman"), ".3f"),
                    _gap(row["completeness_gap"]),
                    f"{row['seconds']:.3g}",
                )
            )
        )
    return "\n".join(lines)


def beside_the_paper(found: Faithfulness, paper: PaperModel | None, run: Run, test: float) -> str:
    """Accuracy and AOPC of ProtoPNet's map against the faithful one, here and there."""
    validation = 100 * float(run.result()["validation_balanced_accuracy"])
    rows = [
        ("validation balanced accuracy, %", f"{validation:.1f}", paper.validation if paper else "-"),
        ("test balanced accuracy, %", f"{100 * test:.1f}", paper.test if paper else "-"),
    ]
    shared = found.common or found
    results = {result.name: result for result in shared.results}
    if {"protopnet", "dasp", "ours"} <= set(results):
        sums = {name: _paper_aopc(shared, results[name]) for name in ("protopnet", "dasp", "ours")}
        n = len(shared.prototypes)
        theirs = paper.aopc_protopnet if paper else float("nan")
        faithful = paper.aopc_protopfaith if paper else float("nan")
        rows += [
            (f"AOPC of ProtoPNet's map, n = {n}", f"{sums['protopnet']:.4f}", _number(theirs, ".6f")),
            (f"AOPC of DASP, n = {n}", f"{sums['dasp']:.4f}", _number(faithful, ".6f")),
            (f"AOPC of ours, n = {n}", f"{sums['ours']:.4f}", "-"),
            (
                "DASP / ProtoPNet's map",
                _number(sums["dasp"] / sums["protopnet"], ".2f"),
                _number(faithful / theirs, ",.0f"),
            ),
            ("ours / ProtoPNet's map", _number(sums["ours"] / sums["protopnet"], ".2f"), "-"),
        ]
    lines = [_line(("", "here", "paper")), "| --- | --- | --- |", *map(_line, rows)]
    return "\n".join(lines)


def _paper_aopc(found: Faithfulness, result: ExplainerResult) -> float:
    return paper_aopc(result.curves["zero"], found.classes, found.prototypes_per_class)


def _standard_error(values: Tensor) -> float:
    return float(values.std(correction=0)) / max(len(values) - 1, 1) ** 0.5


def _number(value: float | None, form: str) -> str:
    return "-" if value is None or pd.isna(value) else format(value, form)


def _gap(value: float) -> str:
    return "-" if pd.isna(value) else f"{value:.1%}" if value < 100 else f"{value:.0e}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
