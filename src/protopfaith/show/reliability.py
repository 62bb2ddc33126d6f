"""A reliability diagram: how often the network is right, by how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protopfaith.evaluation.metrics.calibration import Calibration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
