"""What came out in a sentence or two, and what the columns mean."""

from __future__ import annotations

from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.faithfulness.tables import FEWEST, METRICS, best_of

BY_NAME = {metric.name: metric for metric in METRICS}
COLUMNS = {
    "AOPC": "How much farther from its prototype an image gets while the regions that a map calls most "
    "important are removed, the most important first, until 20% or all of the pixels are gone. The number is "
    "the distance before minus the distance after, so negative and large is good.",
    "AOPC paper's": "The same until all pixels are gone, normalized as in the paper.",
    "own units": "AOPC where each map removes its own units, single pixels or regions.",
    "insertion": "The other way round: pixels are put back onto an empty image, the most important first.",
    "blur, mean": "AOPC where removed pixels become a blurred copy, or the mean color, not the baseline.",
    "Pearson, Spearman": "Correlation of a map with the true Shapley values of the same regions, of values "
    "and of ranks: 1 is perfect, 0 is chance.",
    "relative error": "How far values are from the true ones, in shares of a typical value.",
    "completeness gap": "How far the values of a map are from adding up to what they should.",
}
"""Those of the first table, for people."""


def lead(found: Faithfulness) -> str:
    """Who is faithful, as far as that can be told from so many prototypes."""
    n = len(found.prototypes)
    many = "one prototype" if n == 1 else f"{n} prototypes"
    said = f"A faithful map shows what the network uses. Measured on {many}, each on the image it comes from."
    if n < FEWEST:
        return f"{said} That is too few to say which explainer is the best: take at least {FEWEST}."
    return f"{said} {_winners(found)}"


def _winners(found: Faithfulness) -> str:
    competing = [result for result in found.results if len(result.prototypes) == len(found.prototypes)]
    truest, quickest = (best_of(competing, BY_NAME[name]) for name in ("pearson", "aopc_20"))
    told = []
    if truest is not None:
        told.append(f"The true Shapley values are matched best by {truest}.")
    if quickest is not None:
        told.append(f"Removing what {quickest} calls most important hurts the network most.")
    return " ".join(told) or "No explainer is better than all others by more than chance explains."
