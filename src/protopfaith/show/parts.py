"""Where prototypes look in images of their class, beside the parts that are annotated there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protopfaith.data import ImageSet
from protopfaith.evaluation.parts_results import PartsEvaluation
from protopfaith.show.colors import rgb
from protopfaith.show.plain import without_math

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS, COLUMNS = 4, 5
COLORS = ("#e6550d", "#1f6fb4", "#2ca25f", "#cc79a7", "#f0c000", "#7b3294", "#a6611a", "#008080")


def parts_figure(found: PartsEvaluation, images: ImageSet) -> Figure:
    """Some images of some classes, one row for each class and explainer: a box for each prototype, around the
    peak of its map, and a dot for each part."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    rows = _rows(found, images)
    columns = max((len(row[2]) for row in rows), default=1)
    figure = Figure(figsize=(1.9 * columns + 0.6, 2.1 * len(rows) + 0.4), layout="constrained", dpi=110)
    grid = figure.subplots(max(len(rows), 1), columns, squeeze=False)
    height, width = images.pixels.shape[-2:]
    side = found.settings["box"]
    for axes_row, (title, explainer, places) in zip(grid, rows, strict=True):
        for axes in axes_row:
            axes.axis("off")
        for axes, place in zip(axes_row, places, strict=False):
            index = found.shown[place]
            axes.imshow(rgb(images.image(index)), extent=(0, width, height, 0))
            for number, (x, y) in enumerate(found.places[explainer][place].tolist()):
                left = min(max(x - side * width / 2, 0), width * (1 - side))
                top = min(max(y - side * height / 2, 0), height * (1 - side))
                gap = 0.004 * width * number  # boxes at one place stay apart
                shape = (left + gap, top + gap), side * width - 2 * gap, side * height - 2 * gap
                color = COLORS[number % len(COLORS)]
                axes.add_patch(Rectangle(*shape, fill=False, edgecolor=color, linewidth=1.4))
            points = images.points(index).values()
            if points:
                axes.plot(*zip(*points, strict=True), "wo", markeredgecolor="black", markersize=2.5)
        axes_row[0].set_title(title, fontsize=8, loc="left")
    figure.suptitle("A box for each prototype of the class, around the peak of its map", fontsize=9)
    return without_math(figure)


def _rows(found: PartsEvaluation, images: ImageSet) -> list[tuple[str, str, list[int]]]:
    """A title, the explainer and the places in `shown`, for the first classes."""
    by_class: dict[int, list[int]] = {}
    owners = found.owners or [images.records[index].label for index in found.shown]
    for place, label in enumerate(owners):
        by_class.setdefault(label, []).append(place)
    some = list(by_class.items())[: max(1, ROWS // max(len(found.scores), 1))]
    return [
        (f"{images.classes[label]}: {score.explainer}", score.explainer, places[:COLUMNS])
        for label, places in some
        for score in found.scores
    ]
