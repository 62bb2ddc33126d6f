"""The picture of an external evaluation: every set of images with its interval, beside the internal one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from protopfaith.evaluation.external_results import DIFFERENCE, EXTERNAL, INTERNAL, ExternalEvaluation, Row
from protopfaith.evaluation.metrics.bootstrap import Interval
from protopfaith.show.colors import COOL, WARM
from protopfaith.show.plain import without_math

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {"balanced_accuracy": "balanced accuracy", "auroc": "AUROC"}


def comparison_figure(result: ExternalEvaluation) -> Figure:
    """Balanced accuracy and AUROC of every set, with 95% intervals; a dashed line at the internal one."""
    from matplotlib.figure import Figure

    rows = [row for row in result.rows if row.name != DIFFERENCE]
    rows.sort(key=lambda row: row.name != INTERNAL)
    figure = Figure(figsize=(9.5, 1.6 + 0.42 * len(rows)), layout="constrained", dpi=150)
    panels = figure.subplots(1, 2, sharey=True, squeeze=False)[0]
    for axes, (score, title) in zip(panels, PANELS.items(), strict=True):
        _draw(axes, rows, score)
        axes.set_title(title, fontsize=11)
    labels = [f"{short(row.name)}  ({row.images:,})" for row in rows]
    panels[0].set_yticks(range(len(rows)), labels, fontsize=9)
    panels[0].invert_yaxis()
    figure.suptitle(f"{short(result.name)}: 95% intervals, number of images in parentheses", fontsize=11)
    return without_math(figure)


def _draw(axes: Axes, rows: list[Row], score: str) -> None:
    for place, row in enumerate(rows):
        found, inside = row.scores[score], row.name == INTERNAL
        if math.isnan(found.value):
            axes.text(0.5, place, "not defined", fontsize=8, color="#777777", ha="center", va="center",
                      transform=axes.get_yaxis_transform())  # fmt: skip
            continue
        if inside:
            axes.axvline(found.value, color=COOL, linestyle="--", linewidth=1, alpha=0.7)
        axes.errorbar(
            found.value,
            place,
            xerr=lengths(found),
            fmt="s" if inside else "o",
            color=COOL if inside else WARM,
            capsize=3,
            markersize=5 if place < 2 else 4,
        )
    for place in range(1, len(rows)):
        if _column(rows[place]) != _column(rows[place - 1]):
            axes.axhline(place - 0.5, color="#bbbbbb", linewidth=0.8)
    lows = [row.scores[score] for row in rows if not math.isnan(row.scores[score].value)]
    least = min((found.low if not math.isnan(found.low) else found.value for found in lows), default=0.5)
    axes.set_xlim(max(0.0, math.floor(10 * least - 0.2) / 10), 1.01)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _column(row: Row) -> str:
    """What a row is a part of: all images, or a column of subgroups."""
    name, colon, _ = row.name.partition(":")
    return name if colon and name != EXTERNAL else ""


def lengths(found: Interval) -> list[list[float]] | None:
    """Of the bars of an interval, as matplotlib takes them."""
    if math.isnan(found.low):
        return None
    return [[max(found.value - found.low, 0.0)], [max(found.high - found.value, 0.0)]]


def short(name: str) -> str:
    """A name that has room beside a picture."""
    return name if len(name) <= 40 else f"{name[:38]}…"
