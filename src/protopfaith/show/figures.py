"""The paper's figure: for each prototype a block of two columns (test image, source image) and three rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.explainer import SourceSide
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.regions import RegionValues
from protopfaith.files import atomic
from protopfaith.show.colors import diverging, gray, overlay, rgb, scale_of, sequential
from protopfaith.show.wording.costs import cost, relative_error
from protopfaith.show.wording.numbers import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

INCHES = 1.18  # of one picture's side, in print
HEADER = 2.0  # inches
FORMATS = (".png", ".pdf", ".svg")
STYLE = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.5,
}


@dataclass(frozen=True)
class _Scales:
    """One for all of our maps, one for all of ProtoPNet's."""

    ours: float
    low: float
    high: float


def figure(
    explanation: Explanation,
    path: Path | str | None = None,
    *,
    most: int = 8,
    columns: int = 4,
    dpi: int = 300,
) -> Figure:
    """Draws the explanation: the class's map, then the best `most` prototypes, duplicates grayed.

    Each block has ProtoPNet's own map (top), the images (middle) and our map (bottom), on the test image
    (left) and on the prototype's source image (right). All our maps share one color scale, centered at
    zero. With a `path` it is also written there, as PNG at print size or as PDF or SVG.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = explanation.evidence[:most]
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        sides = 1 + any(one.source_side is not None for one in shown)
        width = columns * (sides * INCHES + 0.25) + 0.25
        legend, block = 0.8, 3 * INCHES + 0.62
        drawing = Figure(figsize=(max(width, 6.4), HEADER + rows * block + legend))
        parts: Any = drawing.subfigures(3, 1, height_ratios=[HEADER, rows * block, legend])
        _draw_header(parts[0], explanation)
        scales = _Scales(scale_of(maps_of(shown)), *activation_limits(shown))
        cells = np.atleast_2d(parts[1].subfigures(rows, columns, squeeze=False, wspace=0.04))
        for place, evidence in enumerate(shown):
            cell = cells[divmod(place, columns)]
            _draw_block(cell, explanation, evidence, place, scales, sides=sides)
        _draw_legend(parts[2], explanation, scales)
        if path is not None:
            write(drawing, path, dpi)
    return drawing


def check_format(name: str) -> None:
    """Raises if the suffix of a file name is no format of figures."""
    if Path(name).suffix.lower() not in FORMATS:
        raise ProtoPFaithError(
            f"A figure is written as {', '.join(FORMATS)}, not as {name}; choose one of them."
        )


def write(drawing: Figure, path: Path | str, dpi: int = 300) -> Path:
    """Saves a figure whole or not at all; the suffix says the format."""
    path = Path(path)
    check_format(path.name)
    with atomic(path) as partial:
        drawing.savefig(partial, dpi=dpi, format=path.suffix[1:].lower(), facecolor="white")
    return path


def maps_of(shown: Sequence[PrototypeEvidence]) -> list[RegionValues]:
    """Every map of a figure that shares its color scale."""
    sources = [one.source_side.regions for one in shown if one.source_side is not None]
    return [one.test for one in shown] + sources


def activation_limits(shown: Sequence[PrototypeEvidence]) -> tuple[float, float]:
    """The range of ProtoPNet's maps in a figure."""
    maps = [one.activation for one in shown] + [
        one.source_side.activation for one in shown if one.source_side
    ]
    return min(float(m.min()) for m in maps), max(float(m.max()) for m in maps)


def _draw_header(part: SubFigure, explanation: Explanation) -> None:
    """The case in words, and the map of the class beside its image."""
    width, height = part.figure.get_figwidth(), HEADER
    side = HEADER - 0.42

    def place(left: float) -> Axes:
        return part.add_axes((left / width, 0.3 / height, side / width, side / height))

    scale = scale_of([explanation.class_map])
    image, heat = place(0.3), place(0.3 + side + 0.12)
    _show(image, rgb(explanation.pixels))
    _label(image, "test image")
    draw_map(heat, explanation.pixels, explanation.class_map, scale)
    _label(heat, f"what speaks for it (±{scale:.3g})")
    left = (0.3 + 2 * side + 0.4) / width
    part.text(left, 0.93, explanation.title, va="top", fontsize=14, fontweight="bold")
    part.text(left, 0.74, _words(explanation), va="top", fontsize=8, linespacing=1.6)


def _words(explanation: Explanation) -> str:
    names, p = explanation.class_names, explanation.probabilities
    best = p.argsort(descending=True)[:3].tolist()
    lines = [
        f"{explanation.name}: predicted {names[explanation.prediction]}",
        "probabilities: " + ", ".join(f"{names[c]} {percent(float(p[c]))}" for c in best),
        f"log P = {explanation.decomposition.total:.4g}"
        if explanation.versus is None
        else f"log P of the one minus log P of the other = {explanation.decomposition.total:+.4g}",
        f"{explanation.settings['players']}, baseline {explanation.baseline}",
        f"{cost(explanation)} ({explanation.method}), relative error "
        + relative_error(explanation.class_map.standard_errors, explanation.precision),
    ]
    return "\n".join(lines)


def _draw_block(
    cell: SubFigure,
    explanation: Explanation,
    evidence: PrototypeEvidence,
    place: int,
    scales: _Scales,
    *,
    sides: int,
) -> None:
    axes = cell.subplots(3, sides, squeeze=False)
    cell.subplots_adjust(left=0.09, right=0.97, top=0.875, bottom=0.01, wspace=0.05, hspace=0.05)
    faded = evidence.duplicate_of is not None
    _draw_column(axes[:, 0], explanation.pixels, evidence, evidence.test, scales)
    side = evidence.source_side
    if side is not None:
        _draw_column(axes[:, 1], side.pixels, side, side.regions, scales)
        axes[0, 1].set_title("source", fontsize=7, pad=2)
    for ax in axes[:, 1:].flat if side is None else ():
        ax.axis("off")
    for ax, name in zip(axes[:, 0], ("ProtoPNet", "image", "ours"), strict=True):
        ax.set_ylabel(name, fontsize=7, labelpad=2)
    axes[0, 0].set_title("test", fontsize=7, pad=2)
    title = rf"{place + 1}.  $\Psi_k$ = {evidence.paper_score:+.2f}"
    if explanation.versus is not None:
        title += f"  ({evidence.class_name})"
    if faded:
        title += f"\nsame as prototype {evidence.duplicate_of}"
        _fade(axes)
    else:
        title += f"\nprototype {evidence.prototype}, distance {evidence.distance:.2f}"
    cell.suptitle(title, fontsize=8, y=0.99, color="#888888" if faded else "black", linespacing=1.35)


def _draw_column(
    axes: np.ndarray,
    pixels: Tensor,
    theirs: PrototypeEvidence | SourceSide,
    regions: RegionValues,
    scales: _Scales,
) -> None:
    from matplotlib.patches import Rectangle

    _show(axes[0], gray(pixels), cmap="gray", vmin=0, vmax=1)
    axes[0].imshow(
        theirs.activation.numpy(),
        cmap=sequential(),
        vmin=scales.low,
        vmax=scales.high,
        alpha=0.6,
        interpolation="nearest",
    )
    left, top, right, bottom = theirs.box
    axes[0].add_patch(
        Rectangle(
            (left - 0.5, top - 0.5), right - left, bottom - top, fill=False, color="white", linewidth=0.9
        )
    )
    _show(axes[1], rgb(pixels))
    draw_map(axes[2], pixels, regions, scales.ours)


def draw_map(ax: Axes, pixels: Tensor, regions: RegionValues, scale: float) -> None:
    """Our map over the gray image; small crosses mark the centers of regions that are undecided."""
    _show(ax, gray(pixels), cmap="gray", vmin=0, vmax=1)
    ax.imshow(overlay(regions.map().numpy(), scale), interpolation="nearest")
    undecided = regions.flat.undecided
    if bool(undecided.any()):
        centers = regions.flat.players.centers[undecided].numpy()
        ax.scatter(
            centers[:, 2], centers[:, 1], marker="x", s=1.6, linewidths=0.3, color="#333333", alpha=0.6
        )


def _fade(axes: np.ndarray) -> None:
    """Grayed: a duplicate says nothing new."""
    for ax in axes.flat:
        for image in ax.get_images():
            image.set_alpha(0.25)


def _draw_legend(part: SubFigure, explanation: Explanation, scales: _Scales) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    ours = part.add_axes((0.06, 0.62, 0.4, 0.14))
    theirs = part.add_axes((0.54, 0.62, 0.4, 0.14))
    bar = part.colorbar(
        ScalarMappable(Normalize(-scales.ours, scales.ours), diverging()),
        cax=ours,
        orientation="horizontal",
    )
    bar.set_label(
        "ours: share in the similarity (minus the share in the distance)\n"
        "blue: less similar, orange: more similar",
        fontsize=7,
    )
    other = part.colorbar(
        ScalarMappable(Normalize(scales.low, scales.high), sequential()),
        cax=theirs,
        orientation="horizontal",
    )
    other.set_label(
        "ProtoPNet: up-scaled activation, box: its 95th percentile\n" + _marks(explanation), fontsize=7
    )
    for one in (bar, other):
        one.ax.tick_params(labelsize=7, length=2)
        one.outline.set_linewidth(0.4)


def _marks(explanation: Explanation) -> str:
    if not explanation.class_map.errors_known:
        return "this estimator gives no standard errors"
    return "x in our maps: within two standard errors of zero"


def _show(ax: Axes, image: np.ndarray, **options: Any) -> None:
    ax.imshow(image, interpolation="nearest", **options)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_linewidth(0.4)


def _label(ax: Axes, text: str) -> None:
    ax.set_xlabel(text, fontsize=7, labelpad=2)
