"""Rows of `agreement.py`: made from a result and the reference, written as they come, shown as a table."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from protopfaith.evaluation.metrics.truth import compare_with_truth


@dataclass(frozen=True)
class Reference:
    """Values `(outputs, n)`, their standard errors, and the reliability of every output."""

    values: Tensor
    standard_errors: Tensor
    reliability: list[float]
    seconds: float


@dataclass(frozen=True)
class Measured:
    """Values, half widths of their 95% intervals (NaN where there are none), and what they cost in all."""

    values: Tensor
    half_widths: Tensor
    evaluations: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """One output of one image, by one estimator at one budget."""

    image: int
    output: int
    estimator: str
    evaluations: int
    correlation: float
    rank_correlation: float
    relative_error: float
    coverage: float
    seconds: float
    speed: float
    reliability: float
    squared_error: float = math.nan  # mean over the players, as other libraries' benchmarks have it

    @property
    def corrected(self) -> float:
        """The correlation with a truth free of noise, as far as the reference's reliability tells."""
        return self.correlation / max(self.reliability, 1e-6) ** 0.5


def compare(
    result: Measured, truth: Reference, *, image: int, name: str, budget: int, rate: float
) -> list[Row]:
    near = compare_with_truth(result.values, truth.values)
    # The interval of the difference: both sides have errors.
    widths = (result.half_widths.square() + (1.96 * truth.standard_errors).square()).sqrt()
    covered = ((result.values - truth.values).abs() <= widths).double().mean(1)
    unknown = result.half_widths.isnan().any(1) | (result.half_widths == 0).all(1)
    columns = (near.pearson, near.spearman, near.relative_error, torch.where(unknown, torch.nan, covered))
    speed = result.evaluations / result.seconds / rate
    return [
        Row(
            image,
            output,
            name,
            budget or result.evaluations,
            *(float(x[output]) for x in columns),
            result.seconds,
            speed,
            truth.reliability[output],
            float((result.values[output] - truth.values[output]).square().mean()),
        )
        for output in range(len(result.values))
    ]


class Rows(list[Row]):
    """All rows so far; a CSV file gets each at once, so that a run that is cut off has lost nothing."""

    def __init__(self, path: Path | None = None):
        super().__init__()
        self._file = None if path is None else path.open("w", newline="")
        if self._file is not None:
            self._writer = csv.DictWriter(self._file, fieldnames=[field.name for field in fields(Row)])
            self._writer.writeheader()

    def add(self, rows: list[Row]) -> None:
        self.extend(rows)
        if self._file is not None:
            self._writer.writerows(vars(row) for row in rows)
            self._file.flush()

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()


def read_rows(path: Path) -> Rows:
    """Rows from the CSV file of an earlier run."""
    kinds: dict[str, Any] = {"estimator": str} | dict.fromkeys(("image", "output", "evaluations"), int)
    rows = Rows()
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            rows.append(Row(**{k: kinds.get(k, float)(v) for k, v in line.items()}))
    return rows


def grouped(rows: list[Row]) -> dict[tuple[str, int], list[Row]]:
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.estimator, row.evaluations].append(row)
    order = list(dict.fromkeys(name for name, _ in groups))
    return dict(sorted(groups.items(), key=lambda item: (order.index(item[0][0]), item[0][1])))


def mean(group: list[Row], field: str) -> float:
    return float(np.mean([getattr(row, field) for row in group]))


def reliability(rows: list[Row]) -> tuple[float, float]:
    """Of the reference's maps: mean and lowest."""
    each = {(row.image, row.output): row.reliability for row in rows}
    return float(np.mean(list(each.values()))), min(each.values())


def table(rows: list[Row]) -> Table:
    """Means over images and outputs; `corrected` is the correlation over the root of the reliability."""
    columns = ("estimator", "evaluations", "maps", "correlation", "lowest", "corrected", "rank")
    found = Table(*columns, "relative error", "95% covers", "s/image", "of plain speed", "mean squared error")
    last = None
    for (name, evaluations), group in grouped(rows).items():
        if last not in (None, name):
            found.add_section()
        last = name
        three = ("corrected", "rank_correlation", "relative_error", "coverage")
        found.add_row(
            name,
            f"{evaluations:,}",
            str(len(group)),
            f"{mean(group, 'correlation'):.3f}",
            f"{min(row.correlation for row in group):.3f}",
            *(f"{mean(group, field):.3f}" for field in three),
            *(f"{mean(group, field):.2f}" for field in ("seconds", "speed")),
            f"{mean(group, 'squared_error'):.2e}",
        )
    return found


def plot(rows: list[Row], ceiling: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves: dict[str, dict[int, float]] = defaultdict(dict)
    for (name, evaluations), group in grouped(rows).items():
        curves[name][evaluations] = mean(group, "correlation")
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name, curve in curves.items():
        if len(curve) > 1:
            axes.plot(list(curve), list(curve.values()), marker="o", label=name)
        else:
            height = next(iter(curve.values()))
            axes.axhline(height, linestyle=":", linewidth=1, color="gray")
            axes.annotate(name, (0.01, height), xycoords=("axes fraction", "data"), fontsize=7)
    axes.axhline(ceiling, linestyle="--", color="black", linewidth=1, label="limit of the reference")
    axes.set(
        xscale="log", xlabel="evaluations", ylabel="mean correlation with the true values", ylim=(0, 1.01)
    )
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
