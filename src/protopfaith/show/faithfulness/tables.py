"""Results as tables: which metrics there are, how they are written, and the tables of the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text
from torch import Tensor

from protopfaith.evaluation.metrics.axioms import TOLERANCE, AxiomCheck
from protopfaith.evaluation.results import ExplainerResult, Faithfulness

FEWEST = 10  # prototypes below which nobody is called the best
LARGE = 10.0  # violation of an axiom from which on its size says nothing
ERRORS = 2.0  # standard errors within which two means are not told apart


@dataclass(frozen=True)
class Metric:
    """A column: its name in the CSV, its title, which end is better, and how it is written."""

    name: str
    title: str
    better: str | None = None  # "low", "high" or, for neither, None
    form: str = ".3f"
    same_as: str = ""  # a metric per prototype of which this one is a multiple


METRICS = (
    Metric("aopc_20", "AOPC\n20%", "low"),
    Metric("aopc_100", "AOPC\n100%", "low"),
    Metric("aopc_paper", "AOPC\npaper's", "low", same_as="aopc_100"),
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
BEST = (
    "The best of a column is marked where its mean over at least "
    f"{FEWEST} prototypes is more than {ERRORS:.0f} standard errors of both away from every other."
)
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
    return Group(*parts, *map(Text, [BEST, *found.remarks()]))


def metric_cells(
    found: Faithfulness, metrics: Sequence[Metric]
) -> tuple[list[Metric], dict[str, list[Cell]]]:
    """The metrics that anyone has, and the cells of each explainer under its label.

    Nobody is best among explainers on different prototypes: only those judged on all of them compete.
    """
    rows = {result.name: _claimed(result, found.row(result)) for result in found.results}
    n = len(found.prototypes)
    competing = [result for result in found.results if len(result.prototypes) == n]
    shown = [m for m in metrics if any(m.name in row for row in rows.values())]
    best = {metric.name: best_of(competing, metric) for metric in shown}
    cells = {}
    for name, row in rows.items():
        label = name if row["n"] == n else f"{name} (n={row['n']:.0f})"
        cells[label] = [(_text(metric, row), best[metric.name] == name) for metric in shown]
    return shown, cells


def _claimed(result: ExplainerResult, row: dict[str, float]) -> dict[str, float]:
    """Maps with a scale of their own claim no shares, so there is no gap between these and a total."""
    return row if result.shares else {**row, "completeness_gap": math.nan}


def best_of(results: Sequence[ExplainerResult], metric: Metric) -> str | None:
    """The explainer that is better than all others by more than the errors; None if there is no such one."""
    if metric.better is None:
        return None
    sign = 1 if metric.better == "high" else -1
    known = {result.name: sign * _values(result, metric) for result in results}
    known = {name: values for name, values in known.items() if len(values)}
    if len(known) < 2 or min(len(values) for values in known.values()) < FEWEST:
        return None
    (first, best), *others = sorted(known.items(), key=lambda item: -float(item[1].mean()))
    low = float(best.mean()) - ERRORS * _error(best)
    return first if all(low > float(one.mean()) + ERRORS * _error(one) for _, one in others) else None


def _values(result: ExplainerResult, metric: Metric) -> Tensor:
    """The metric of every prototype (or checked image) that has it."""
    values = {**result.per_prototype(), "randomization": result.randomization, "stability": result.stability}
    found = values.get(metric.same_as or metric.name, result.seconds[:0])
    if metric.name == "completeness_gap" and not result.shares:
        found = found[:0]
    return found[~found.isnan()].double()


def _error(values: Tensor) -> float:
    return float(values.std()) / len(values) ** 0.5


def _text(metric: Metric, row: dict[str, float]) -> str:
    value = row.get(metric.name, math.nan)
    if math.isnan(value):
        return "-"
    return f"{value:.0e}" if metric.form.endswith("%") and value >= 100 else format(value, metric.form)


def axiom_text(check: AxiomCheck) -> str:
    """The verdict on an axiom, and by how much it is violated."""
    if check.passed is None:
        return "n/a"
    size = check.violation
    if size >= LARGE:  # a map that claims no shares is off by any factor
        return "fail >10"
    text = "0" if size == 0 else f"{size:.3f}" if size >= 1e-3 else f"{size:.0e}"
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
