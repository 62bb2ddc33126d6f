"""The picture of findings on images from elsewhere: each with its interval, beside the run's own test set."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from protopfaith.evaluation.external_findings import ExternalFindings
from protopfaith.evaluation.external_results import EXTERNAL, INTERNAL
from protopfaith.evaluation.metrics.findings import FindingsEvaluation
from protopfaith.show.colors import COOL, WARM
from protopfaith.show.external import lengths, short
from protopfaith.show.plain import without_math

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {"auroc": "AUROC", "average_precision": "average precision"}


def finding_comparison(result: ExternalFindings) -> Figure:
    """AUROC and average precision of every finding, on external and internal images, with 95% intervals."""
    from matplotlib.figure import Figure

    names = [one.name for one in result.result.findings]
    figure = Figure(figsize=(9.5, 1.8 + 0.5 * len(names)), layout="constrained", dpi=150)
    panels = figure.subplots(1, 2, sharey=True, squeeze=False)[0]
    panels[0].axvline(0.5, color="#777777", linestyle=":", linewidth=1.2, label="guessing")
    for axes, (score, title) in zip(panels, PANELS.items(), strict=True):
        _draw(axes, result.result, score, EXTERNAL)
        if result.internal is not None:
            _draw(axes, result.internal, score, INTERNAL)
        axes.set_title(title, fontsize=11)
        axes.set_xlim(right=1.02)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    panels[0].set_yticks(range(len(names)), [short(name) for name in names], fontsize=9)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    marks = panels[0].get_legend_handles_labels()
    figure.legend(*marks, loc="outside lower center", ncols=len(marks[0]), fontsize=8, frameon=False)
    figure.suptitle(f"{short(result.name)}: {_images(result)}; 95% intervals", fontsize=11)
    return without_math(figure)


def _images(result: ExternalFindings) -> str:
    """How many images the marks are of."""
    count = f"{result.result.images:,} images"
    return count if result.internal is None else f"{count}, and {result.internal.images:,} of its own"


def _draw(axes: Axes, found: FindingsEvaluation, score: str, name: str) -> None:
    """One mark for each finding that has a score; external ones above internal ones."""
    label: str | None = name
    color, shift = (COOL, 0.12) if name == INTERNAL else (WARM, -0.12)
    for place, one in enumerate(found.findings):
        interval = getattr(one, score)
        if math.isnan(interval.value):
            continue
        axes.errorbar(
            interval.value,
            place + shift,
            xerr=lengths(interval),
            fmt="s" if name == INTERNAL else "o",
            color=color,
            capsize=3,
            markersize=5,
            label=label,
        )
        label = None
