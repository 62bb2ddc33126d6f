"""Results as tables: which metrics there are, how they are written, and the tables of the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from protopfaith.evaluation.metrics.axioms import TOLERANCE, AxiomCheck
from protopfaith.evaluation.results import Faithfulness


@dataclass(frozen=True)
class Metric:
    """A column: its name in the CSV, its title, which end is better, and how it is written."""

    name: str
    title: str
    better: str | None = None  # "low", "high" or, for neither, None
    form: str = ".3f"


METRICS = (
    Metric("aopc_20", "AOPC\n20%", "low"),
    Metric("aopc_100", "AOPC\n100%", "low"),
    Metric("aopc_paper", "AOPC\npaper's", "low"),
    Metric("aopc_20_own", "own\nunits\n20%", "low"),
    Metric("aopc_100_own", "own\nunits\n100%", "low"),
    Metric("insertion", "insertion", "low"),
    Metric("aopc_20_blur", "blur\n20%", "low"),
    Metric("aopc_20_mean", "mean\n20%", "low"),
    Metric("pearson", "Pearson", "high"),
    Metric("spearman", "Spearman", "high"),
    Metric("relative_error", "relative\nerror", "low", ".2f"),
    Metric("completeness_gap", "complete-\nness gap", "low", ".1%"),
    Metric("seconds", "seconds\nper image", None, ".3g"),
)
SANITY = (
    Metric("randomization", "weights\nshuffled", None, ".2f"),
    Metric("stability", "noise\nadded", "high", ".2f"),
    Metric("inside", "inside\nobject", "high", ".0%"),
)
# For the terminal: tables that fit into 80 columns.
REMOVAL, OTHERS, AGAINST_TRUTH = METRICS[:5], METRICS[5:8], METRICS[8:]
AXIOMS_IN_A_ROW = 4
Cell = tuple[str, bool]  # its text, and whether it is the best of its column


def terminal_tables(found: Faithfulness) -> Group:
    """All tables, and what is to be said about them."""
    parts: list[Any] = [
        _metrics_table(found, "Removal of the most important regions", REMOVAL),
        _metrics_table(found, "Other removals", OTHERS),
        _metrics_table(found, "Truth", AGAINST_TRUTH),
    ]
    common = found.common
    if common is not None:
        title = f"On the {len(common.prototypes)} prototypes that all explainers have in common"
        parts += [
            _metrics_table(common, f"{title}: removal", REMOVAL),
            _metrics_table(common, "The same: truth", AGAINST_TRUTH),
        ]
    parts += [_metrics_table(found, "Sanity", SANITY), *_axioms_tables(found)]
    return Group(*parts, *map(Text, found.remarks()))


def metric_cells(
    found: Faithfulness, metrics: Sequence[Metric]
) -> tuple[list[Metric], dict[str, list[Cell]]]:
    """The metrics that anyone has, and the cells of each explainer under its label.

    Nobody is best among explainers on different prototypes: only those judged on all of them compete.
    """
    rows = {result.name: found.row(result) for result in found.results}
    n = len(found.prototypes)
    competing = [row for row in rows.values() if row["n"] == n]
    shown = [m for m in metrics if any(m.name in row for row in rows.values())]
    cells = {}
    for name, row in rows.items():
        whole = row["n"] == n
        label = name if whole else f"{name} (n={row['n']:.0f})"
        cells[label] = [mark(metric, row, competing if whole else []) for metric in shown]
    return shown, cells


def mark(metric: Metric, row: dict[str, float], rows: Sequence[dict[str, float]]) -> Cell:
    """The text of a cell, and whether it is the best of `rows`."""
    value = row.get(metric.name, math.nan)
    if math.isnan(value):
        return "-", False
    known = [r[metric.name] for r in rows if not math.isnan(r.get(metric.name, math.nan))]
    best = {"low": min, "high": max}.get(metric.better or "")
    text = f"{value:.0e}" if metric.form.endswith("%") and value >= 100 else format(value, metric.form)
    return text, best is not None and len(known) > 1 and value == best(known)


def axiom_text(check: AxiomCheck) -> str:
    if check.passed is None:
        return "n/a"
    size = check.violation
    text = "0" if size == 0 else f"{size:.3f}" if 1e-3 <= size < 100 else f"{size:.0e}"
    verdict = "fail " if not check.passed else "pass " if size <= TOLERANCE else "pass ±"
    return f"{verdict}{text}"


def _metrics_table(found: Faithfulness, title: str, metrics: Sequence[Metric]) -> Table:
    shown, rows = metric_cells(found, metrics)
    table = Table(title=title, title_justify="left")
    table.add_column("explainer", no_wrap=True)
    for metric in shown:
        table.add_column(metric.title, justify="right")
    for label, cells in rows.items():
        table.add_row(label, *(f"[bold green]{text}[/]" if best else text for text, best in cells))
    return table


def _axioms_tables(found: Faithfulness) -> list[Table]:
    """Seven axioms side by side are too wide for a terminal."""
    count = len(found.results[0].axioms) if found.results else 0
    starts = range(0, count, AXIOMS_IN_A_ROW)
    return [_axioms_table(found, slice(start, start + AXIOMS_IN_A_ROW)) for start in starts]


def _axioms_table(found: Faithfulness, some: slice) -> Table:
    title = "Axioms: violation as a share of the largest value (±: within sampling errors)"
    table = Table(title=title if some.start == 0 else None, title_justify="left")
    table.add_column("explainer", no_wrap=True)
    for check in found.results[0].axioms[some]:
        header = check.axiom.replace("completeness", "complete-\nness").replace(" (", "\n(")
        table.add_column(header, justify="right", no_wrap=True)
    colors = {True: "green", False: "red", None: "dim"}
    for result in found.results:
        texts = (f"[{colors[check.passed]}]{axiom_text(check)}[/]" for check in result.axioms[some])
        table.add_row(result.name, *texts)
    return table
