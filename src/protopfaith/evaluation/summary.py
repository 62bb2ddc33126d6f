"""What came out for every explainer, as tables and CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Group
from rich.table import Table
from rich.text import Text
from torch import Tensor

from protopfaith.evaluation.agreement import Truth
from protopfaith.evaluation.aopc import aopc, insertion_score, paper_aopc
from protopfaith.evaluation.axioms import TOLERANCE, AxiomCheck
from protopfaith.evaluation.sanity import PrototypeHealth

if TYPE_CHECKING:
    import pandas as pd

EARLY = 0.2  # the share of the image whose removal tells most


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
    Metric("aopc_20_own", "own\nunits 20%", "low"),
    Metric("aopc_100_own", "own\nunits 100%", "low"),
    Metric("insertion", "insertion", "low"),
    Metric("aopc_20_blur", "blur\n20%", "low"),
    Metric("aopc_20_mean", "mean\n20%", "low"),
    Metric("pearson", "Pearson", "high"),
    Metric("spearman", "Spearman", "high"),
    Metric("relative_error", "relative\nerror", "low", ".2f"),
    Metric("completeness_gap", "completeness\ngap", "low", ".1%"),
    Metric("seconds", "seconds\nan image", None, ".3g"),
)
SANITY = (
    Metric("randomization", "weights\nshuffled", None, ".2f"),
    Metric("stability", "noise\nadded", "high", ".2f"),
    Metric("inside", "inside\nobject", "high", ".0%"),
)
# For the terminal: tables that fit into 80 columns.
TABLES = {
    "Removal of the most important regions": METRICS[:5],
    "Other removals": METRICS[5:8],
    "Truth": METRICS[8:],
    "Sanity": SANITY,
}


@dataclass(frozen=True, eq=False)
class ExplainerResult:
    """One explainer on all chosen prototypes. ``curves``: kind of removal to (n, T + 1); the rest is (n,)."""

    name: str
    curves: dict[str, Tensor]
    agreement: dict[str, Tensor]  # pearson, spearman, relative_error; empty without a truth
    completeness_gap: Tensor
    seconds: Tensor
    inside: Tensor
    axioms: tuple[AxiomCheck, ...]
    randomization: Tensor
    stability: Tensor
    quantus: dict[str, Tensor] = field(default_factory=dict)

    def per_prototype(self) -> dict[str, Tensor]:
        """Every metric that each prototype has, (n,)."""
        zero, own = self.curves["zero"], self.curves["own"]
        return {
            "aopc_20": aopc(zero, EARLY),
            "aopc_100": aopc(zero),
            "aopc_20_own": aopc(own, EARLY),
            "aopc_100_own": aopc(own),
            "insertion": insertion_score(self.curves["insertion"]),
            "aopc_20_blur": aopc(self.curves["blur"], EARLY),
            "aopc_100_blur": aopc(self.curves["blur"]),
            "aopc_20_mean": aopc(self.curves["mean"], EARLY),
            "aopc_100_mean": aopc(self.curves["mean"]),
            **self.agreement,
            "completeness_gap": self.completeness_gap,
            "seconds": self.seconds,
            "inside": self.inside,
            **self.quantus,
        }


@dataclass(frozen=True, eq=False)
class Faithfulness:
    """How faithful explainers are on one run; ``folder`` holds page, figures and CSV."""

    folder: Path
    prototypes: tuple[int, ...]
    classes: int
    prototypes_per_class: float
    steps: int
    players: str
    results: tuple[ExplainerResult, ...]
    skipped: dict[str, str]
    """Explainers that could not run, and why."""
    truth: Truth | None
    """The true Shapley values of the prototypes, if they were asked for."""
    object_share: float
    """The object's mean share of the pixels: what a map without preference has inside; NaN if not known."""
    health: PrototypeHealth
    settings: dict[str, Any]

    @property
    def page(self) -> Path:
        return self.folder / "index.html"

    def row(self, result: ExplainerResult) -> dict[str, float]:
        """Means over prototypes of every metric of one explainer."""
        row = {name: _mean(values) for name, values in result.per_prototype().items()}
        row["aopc_paper"] = paper_aopc(result.curves["zero"], self.classes, self.prototypes_per_class)
        row["seconds"] = float(result.seconds.median())  # the first one also waits for imports
        row |= {"randomization": _mean(result.randomization), "stability": _mean(result.stability)}
        row["axioms_passed"] = sum(check.passed is True for check in result.axioms)
        row |= {f"axiom: {check.axiom}": check.violation for check in result.axioms}
        return row

    def frame(self) -> pd.DataFrame:
        """One line for each explainer."""
        import pandas as pd

        return pd.DataFrame({r.name: self.row(r) for r in self.results}).T.rename_axis("explainer")

    def prototypes_frame(self) -> pd.DataFrame:
        """One line for each explainer and prototype."""
        import pandas as pd

        frames = []
        for result in self.results:
            columns = {name: values.tolist() for name, values in result.per_prototype().items()}
            frames.append(pd.DataFrame({"explainer": result.name, "prototype": self.prototypes, **columns}))
        return pd.concat(frames, ignore_index=True)

    def table(self) -> Group:
        """For the terminal."""
        tables = [self._metrics_table(title, metrics) for title, metrics in TABLES.items()]
        parts: list[Any] = [*tables, self._axioms_table(), *map(Text, self.remarks())]
        return Group(*parts)

    def remarks(self) -> list[str]:
        """Sentences that belong to the tables."""
        n, total = len(self.prototypes), self.health.distinct.total
        said = [
            f"AOPC: mean of s(image) - s(image with pixels removed) over {n} of {total} prototypes on their "
            f"source images and T = {self.steps} steps; negative and large is good. All explainers remove "
            f"the same regions ({self.players}); own units: the map's own resolution. The paper's normalizer "
            "is 1/(C + K + T - 1).",
        ]
        if self.truth is not None:
            said.append(
                f"Pearson, Spearman and error are against true Shapley values ({self.truth.evaluations:,} "
                f"evaluations an image), whose own reliability is {_mean(self.truth.reliability):.3f}; the "
                f"rank correlation between its halves is {_mean(self.truth.rank_reliability):.3f}, as the "
                "order of players that hardly matter is noise."
            )
        if not math.isnan(self.object_share):
            said.append(f"The object covers {self.object_share:.0%} of the pixels.")
        said.append(health_sentence(self.health))
        said += [f"{name} was left out: {why}" for name, why in self.skipped.items()]
        return said

    def _metrics_table(self, title: str, metrics: Sequence[Metric]) -> Table:
        rows = {result.name: self.row(result) for result in self.results}
        table = Table(title=title, title_justify="left")
        table.add_column("explainer", no_wrap=True)
        metrics = [m for m in metrics if any(m.name in row for row in rows.values())]
        for metric in metrics:
            table.add_column(metric.title, justify="right")
        for name, row in rows.items():
            cells = [mark(metric, row, rows.values()) for metric in metrics]
            table.add_row(name, *(f"[bold green]{text}[/]" if best else text for text, best in cells))
        return table

    def _axioms_table(self) -> Table:
        table = Table(
            title="Axioms: violation as a share of the largest value (±: within sampling errors)",
            title_justify="left",
        )
        table.add_column("explainer")
        for check in self.results[0].axioms if self.results else ():
            table.add_column(check.axiom, justify="right")
        for result in self.results:
            colors = {True: "green", False: "red", None: "dim"}
            table.add_row(result.name, *(f"[{colors[c.passed]}]{axiom_text(c)}[/]" for c in result.axioms))
        return table


def mark(metric: Metric, row: dict[str, float], rows: Any) -> tuple[str, bool]:
    """The text of a cell, and whether it is the best of its column."""
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
    verdict = "fail" if not check.passed else "pass" if size <= TOLERANCE else "pass ±"
    return f"{verdict} {text}"


def health_sentence(health: PrototypeHealth) -> str:
    distinct = health.distinct
    return (
        f"{distinct.distinct} of {distinct.total} prototypes are distinct, {len(health.collapsed)} classes "
        f"have collapsed onto one, and {len(health.dead)} prototypes are dead (their distance hardly varies "
        "over images)."
    )


def worst(checks: Sequence[Sequence[AxiomCheck]]) -> tuple[AxiomCheck, ...]:
    """Of checks on several prototypes, for each axiom the one furthest beyond what is allowed."""

    def excess(check: AxiomCheck) -> float:
        return -math.inf if math.isnan(check.violation) else check.violation / check.allowed

    return tuple(max(same, key=excess) for same in zip(*checks, strict=True))


def _mean(values: Tensor) -> float:
    return float(torch.nanmean(values.double())) if len(values) else math.nan
