"""Reliability diagrams: how often the network is right, by how sure it is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from protopfaith.evaluation.metrics.calibration import Calibration, Steps
from protopfaith.evaluation.metrics.findings import FindingScores, FindingsEvaluation
from protopfaith.show.colors import COOL, WARM
from protopfaith.show.plain import without_math

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 4  # small pictures in a row
LARGEST = 9000  # pixels of the height, however many findings there are
LONGEST = 26  # letters of a title that has room above a small picture


def reliability_figure(result: Calibration) -> Figure:
    """Bars of accuracy over the probability of the chosen class, the diagonal they should end on, and how
    many images there are in each step."""
    from matplotlib.figure import Figure

    bins = len(result.counts)
    centers = [(number + 0.5) / bins for number in range(bins)]
    figure = Figure(figsize=(4.6, 5.4), layout="constrained", dpi=150)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.bar(centers, result.accuracy, width=0.92 / bins, color="#4477aa", label="right")
    above.plot([0, 1], [0, 1], color="#cc6633", linestyle="--", label="as sure as right")
    above.set(ylabel="share that is right", ylim=(0, 1), xlim=(0, 1))
    above.legend(loc="upper left", frameon=False)
    above.set_title(str(result).replace(" at a", "\nat a").replace("; ", "\n"), fontsize=10)
    below.bar(centers, result.counts, width=0.92 / bins, color="#999999")
    below.set(xlabel="probability of the class that was chosen", ylabel="images")
    return figure


def finding_reliability(result: FindingsEvaluation) -> Figure:
    """One small picture for each finding: the share of images that have it over the probability that the
    network gives it, the diagonal where these should lie, and how many images there are in each step.

    Args:
        result: how well the findings are decided

    >>> import torch
    >>> from protopfaith.evaluation import judge_findings
    >>> p, y = torch.tensor([[0.9], [0.2]]), torch.tensor([[1.0], [0.0]])
    >>> len(finding_reliability(judge_findings(p, y, ["edema"], resamples=10)).axes)  # dots, and counts
    2
    """
    from matplotlib.figure import Figure

    findings = result.findings
    rows = math.ceil(len(findings) / ACROSS)
    across = math.ceil(len(findings) / rows)  # rows of equal length
    height = 1.3 + 2.9 * rows
    figure = Figure(
        figsize=(max(5.2, 2.5 * across), height), layout="constrained", dpi=min(150, LARGEST / height)
    )
    grid = figure.add_gridspec(2 * rows, across, height_ratios=[3, 1] * rows)
    for number, one in enumerate(findings):
        row, column = divmod(number, across)
        above = figure.add_subplot(grid[2 * row, column])
        below = figure.add_subplot(grid[2 * row + 1, column], sharex=above)
        _dots(above, one)
        _counts(below, one.steps)
        if number + across >= len(findings):  # the lowest of its column
            below.set_xlabel("probability", fontsize=8)
        if column == 0:
            above.set_ylabel("share that has it", fontsize=8)
            below.set_ylabel("images", fontsize=8)
    figure.suptitle("Of the images given a probability, how many have the finding?", fontsize=11)
    marks = figure.axes[0].get_legend_handles_labels()
    figure.legend(*marks, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return without_math(figure)


def _dots(axes: Axes, one: FindingScores) -> None:
    """The share of images that have the finding in each step, with its interval."""
    name = one.name if len(one.name) <= LONGEST else f"{one.name[: LONGEST - 1]}…"
    error = one.calibration_error
    axes.set_title(name + ("" if math.isnan(error) else f"\ncalibration error {error:.3f}"), fontsize=9)
    axes.plot([0, 1], [0, 1], color=WARM, linestyle="--", linewidth=1.2, label="as sure as right")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.05, 1.05), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.tick_params(labelsize=8, labelbottom=False)
    axes.grid(color="#dddddd", linewidth=0.6)
    counts, p, share = _filled(one.steps)
    low, high = share_interval(share, counts)
    axes.errorbar(
        p,
        share,
        yerr=[share - low, high - share],
        fmt="o",
        color=COOL,
        markersize=4.5,
        label="images of a step, with a 95% interval",
    )
    if not len(counts):
        axes.text(
            0.5,
            0.5,
            "not known\nof any image",
            ha="center",
            va="center",
            fontsize=8,
            bbox={"facecolor": "white", "linewidth": 0},
        )


def _counts(axes: Axes, steps: Steps) -> None:
    """How many images there are in each step."""
    bins = max(len(steps.counts), 1)
    centers = (np.arange(len(steps.counts)) + 0.5) / bins
    axes.bar(centers, steps.counts, width=0.92 / bins, color="#8a8a8a")
    most = max(steps.counts, default=0)
    axes.set(yticks=[0, most] if most else [0], ylim=(0, max(most, 1) * 1.1))
    axes.tick_params(labelsize=8)


def _filled(steps: Steps) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, mean probabilities and shares of the steps that have images."""
    columns = (np.array(values, dtype=float) for values in (steps.counts, steps.probability, steps.share))
    counts, p, share = columns
    return counts[counts > 0], p[counts > 0], share[counts > 0]


def share_interval(share: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95% interval of shares, which is honest where there are few images, or all or none have it.

    Args:
        share: what was observed
        counts: of so many images

    >>> low, high = share_interval(np.array([0.5, 1.0]), np.array([4, 4]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.15, 0.51], [0.85, 1.0])
    """
    square = 1.959964**2 / counts
    middle = (share + square / 2) / (1 + square)
    half = np.sqrt(share * (1 - share) * square + square**2 / 4) / (1 + square)
    return np.minimum(middle - half, share), np.maximum(middle + half, share)
