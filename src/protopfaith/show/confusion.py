"""A confusion matrix as a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from protopfaith.evaluation.metrics.classification import Classification
from protopfaith.show.plain import without_math

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NUMBERS = 20
"""More classes than this, and a confusion matrix shows colors without numbers."""
MOST_NAMES = 60


def confusion_figure(result: Classification) -> Figure:
    """The confusion matrix as a picture: colors are fractions of the true class, numbers (for few classes)
    count images; class names are written as far as they can be read."""
    from matplotlib.figure import Figure

    n = len(result.class_names)
    counts = torch.tensor(result.confusion, dtype=torch.float64)
    fractions = (counts / counts.sum(1, keepdim=True).clamp(min=1)).numpy()
    side = min(max(4.0, 2.2 + 0.42 * n), 14.0)
    figure = Figure(figsize=(side + 0.8, side), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    picture = axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(picture, ax=axes, label="fraction of the true class", shrink=0.8)
    axes.set(xlabel="predicted class", ylabel="true class")
    axes.set_title(f"balanced accuracy {result.balanced_accuracy:.3f}\n{result.images} images", fontsize=11)
    _label(axes, result.class_names)
    if n <= MOST_NUMBERS:
        for row, column in ((row, column) for row in range(n) for column in range(n)):
            count = result.confusion[row][column]
            if count:
                color = "white" if fractions[row, column] > 0.5 else "black"
                axes.text(column, row, str(count), ha="center", va="center", color=color, fontsize=9)
    return without_math(figure)


def _label(axes: Any, names: tuple[str, ...]) -> None:
    """Names on both axes; beyond a readable number every tenth or so class by its number."""
    n = len(names)
    if n <= MOST_NAMES:
        positions, texts = range(n), [name if len(name) <= 24 else name[:22] + "…" for name in names]
    else:
        positions = range(0, n, math.ceil(n / 20))
        texts = [str(position) for position in positions]
    size = 9 if n <= MOST_NUMBERS else 8 if n <= 30 else 6
    fits = max(map(len, texts)) * len(texts) <= 24
    axes.set_xticks(list(positions), texts, rotation=0 if fits else 90, fontsize=size)
    axes.set_yticks(list(positions), texts, fontsize=size)
