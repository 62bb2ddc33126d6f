"""The paper's figure: for each prototype a block of two columns (test image, source image) and three rows."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.regions import RegionValues
from protopfaith.explanation.sources import SourceSide
from protopfaith.files import atomic
from protopfaith.show.colors import diverging, overlay, plain_colors, rgb, sequential
from protopfaith.show.heat import activation_limits, decided, edges, maps_of, scale_of, shown_evidence
from protopfaith.show.outlines import Grid
from protopfaith.show.wording.costs import cost, relative_error
from protopfaith.show.wording.decision import lead
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.trust import banners

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

INCHES = 1.18  # of one picture's side, in print
HEADER = 2.5  # inches
FORMATS = (".png", ".pdf", ".svg")
STYLE = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.4,
}
EDGES = {1: "#8f2a04", -1: "#0a3f78"}  # around what is decided, by its sign


@dataclass(frozen=True)
class _Scales:
    """One for all of our maps of prototypes, one for all of ProtoPNet's."""

    ours: float
    low: float
    high: float
    hatching: bool


def figure(
    explanation: Explanation,
    path: Path | str | None = None,
    *,
    most: int = 10,
    columns: int = 5,
    dpi: int = 300,
    hatching: bool = False,
) -> Figure:
    """Draws the explanation: the image beside the map of its class, then the best prototypes.

    Each block has ProtoPNet's own map (top), the images (middle) and our map (bottom), on the test image
    (left) and on the prototype's source image (right). Our maps of prototypes share one scale; the class
    map has a color bar of its own. What is undecided stays uncolored.

    Args:
        explanation: What to draw.
        path: Where to write it, as PNG at print size or as PDF or SVG; nowhere by default.
        most: How many prototypes to draw at most.
        columns: Prototypes in a row.
        dpi: Resolution of a PNG.
        hatching: Whether to hatch undecided regions.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = explanation.evidence[:most]
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        sides = 1 + any(one.source_side is not None for one in shown)
        width = max(columns * (sides * INCHES + 0.25) + 0.25, 7.4)
        legend, block = 0.8, 3 * INCHES + 0.62
        drawing = Figure(figsize=(width, HEADER + rows * block + legend))
        parts: Any = drawing.subfigures(3, 1, height_ratios=[HEADER, rows * block, legend])
        _draw_header(parts[0], explanation, hatching)
        scales = _Scales(scale_of(maps_of(shown)), *activation_limits(shown), hatching)
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
        form = path.suffix[1:].lower()
        fast: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if form == "png" else {}
        drawing.savefig(partial, dpi=dpi, format=form, facecolor="white", **fast)
    return path


def _draw_header(part: SubFigure, explanation: Explanation, hatching: bool) -> None:
    """The image beside the map of its class, with the map's own color bar, and the case in words."""
    width, height = part.figure.get_figwidth(), HEADER
    side, bottom = HEADER - 0.62, 0.5

    def place(left: float, low: float = bottom, high: float = side, across: float = side) -> Axes:
        return part.add_axes((left / width, low / height, across / width, high / height))

    regions = explanation.class_map
    scale = scale_of([regions])
    image, heat = place(0.25), place(0.35 + side)
    _show(image, rgb(explanation.pixels))
    _label(image, "the image")
    draw_map(heat, explanation.pixels, regions, scale, hatching=hatching)
    bar = _color_bar(part, place(0.35 + side + 0.1, 0.36, 0.09, side - 0.2), scale)
    bar.ax.set_xlabel("against, and for, the class", fontsize=6, labelpad=1)
    left, chars = 0.35 + 2 * side + 0.3, 22 * (width - (0.35 + 2 * side + 0.3))
    wrapped = textwrap.fill(lead(explanation), max(int(chars * 0.62), 30))
    warning = "\n".join(banner.title for banner in banners(explanation))
    part.text(left / width, 0.95, explanation.title, va="top", fontsize=14, fontweight="bold")
    part.text(left / width, 0.8, wrapped, va="top", fontsize=9, linespacing=1.45)
    small = _words(explanation, int(chars * 0.8))
    part.text(left / width, 0.2, small, va="bottom", fontsize=7, linespacing=1.5)
    if warning:
        alert = {"facecolor": "#fdeee4", "edgecolor": "#7a2600", "linewidth": 0.6, "pad": 3}
        part.text(left / width, 0.1, warning, va="center", fontsize=8, color="#7a2600", bbox=alert)


def _words(explanation: Explanation, width: int) -> str:
    names, p = explanation.class_names, explanation.probabilities
    best = p.argsort(descending=True)[:3].tolist()
    error = relative_error(explanation.class_map.standard_errors, explanation.precision)
    lines = [
        f"{explanation.name}: " + ", ".join(f"{names[c]} {percent(float(p[c]))}" for c in best),
        f"{explanation.settings['players']}, baseline {explanation.baseline}",
        f"{cost(explanation)} ({explanation.method}), relative error {error}",
    ]
    return "\n".join(textwrap.shorten(line, max(width, 40), placeholder=" ...") for line in lines)


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
    title = f"{place + 1}. prototype {evidence.prototype}"
    if explanation.versus is not None:
        title += f" ({evidence.class_name})"
    if faded:
        title += f"\nsame as prototype {evidence.duplicate_of}"
        _fade(axes)
    else:
        title += f"\ndistance {evidence.distance:.2f}, " + rf"$\Psi_k$ = {evidence.paper_score:+.2f}"
    cell.suptitle(title, fontsize=8, y=0.99, color="#888888" if faded else "black", linespacing=1.35)


def _draw_column(
    axes: np.ndarray,
    pixels: Tensor,
    theirs: PrototypeEvidence | SourceSide,
    regions: RegionValues,
    scales: _Scales,
) -> None:
    from matplotlib.patches import Rectangle

    image = rgb(pixels)
    heat = plain_colors(theirs.activation.numpy(), scales.low, scales.high)
    _show(axes[0], 0.4 * image + 0.6 * heat)
    left, top, right, bottom = theirs.box
    corner = (left - 0.5, top - 0.5)
    axes[0].add_patch(Rectangle(corner, right - left, bottom - top, fill=False, color="white", linewidth=0.9))
    _show(axes[1], image)
    draw_map(axes[2], pixels, regions, scales.ours, hatching=scales.hatching)


def draw_map(
    ax: Axes, pixels: Tensor, regions: RegionValues, scale: float, *, hatching: bool = False
) -> None:
    """Our map over the image: what is decided is colored and outlined, all else stays as it is."""
    from matplotlib.collections import PolyCollection

    regions = regions.flat
    evidence, labels = shown_evidence(regions).numpy(), regions.players.labels.numpy()
    heat = overlay(evidence[labels], scale)
    image = rgb(pixels)
    _show(ax, image * (1 - heat[..., 3:]) + heat[..., :3] * heat[..., 3:])
    if not regions.errors_known:
        return
    grid, sure = Grid.of(labels), decided(regions).numpy()
    for edge in edges(regions, scale):
        borders = [np.array(loop) - 0.5 for loop in grid.borders(edge.members)]
        lines = [(EDGES[edge.sign], 0.3, 0.6)]
        if edge.strong:
            lines = [("white", 1.3, 0.8), (EDGES[edge.sign], 0.7, 1.0)]
        for color, width, opacity in lines:
            ax.add_collection(
                PolyCollection(borders, facecolors="none", edgecolors=color, linewidths=width, alpha=opacity)
            )
    if hatching and not sure.all():
        members = np.where(sure, np.nan, 1.0)[labels]
        ax.contourf(members, levels=[0.5, 1.5], colors="none", hatches=["/////"])


def _fade(axes: np.ndarray) -> None:
    """Grayed: a duplicate says nothing new."""
    for ax in axes.flat:
        for image in ax.get_images():
            image.set_alpha(0.25)


def _draw_legend(part: SubFigure, explanation: Explanation, scales: _Scales) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    bar = _color_bar(part, part.add_axes((0.06, 0.62, 0.4, 0.14)), scales.ours)
    bar.set_label(
        "ours: share in the similarity to a prototype; blue: less similar, orange: more similar\n"
        + _key(explanation),
        fontsize=7,
    )
    theirs = part.add_axes((0.54, 0.62, 0.4, 0.14))
    colors = ScalarMappable(Normalize(scales.low, scales.high), sequential())
    other = part.colorbar(colors, cax=theirs, orientation="horizontal")
    other.set_label("ProtoPNet: up-scaled activation; box: its 95th percentile", fontsize=7)
    other.ax.tick_params(labelsize=7, length=2)
    other.outline.set_linewidth(0.4)


def _color_bar(part: SubFigure, ax: Axes, scale: float) -> Any:
    """From -scale to +scale, in the colors of our maps."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colors = ScalarMappable(Normalize(-scale, scale), diverging())
    bar = part.colorbar(colors, cax=ax, orientation="horizontal", ticks=[-scale, 0, scale])
    bar.ax.set_xticklabels([f"−{scale:.3g}", "0", f"+{scale:.3g}"])
    bar.ax.tick_params(labelsize=7, length=2)
    bar.outline.set_linewidth(0.4)
    return bar


def _key(explanation: Explanation) -> str:
    if not explanation.class_map.errors_known:
        return "this estimator gives no errors, so every region is colored"
    return "colored and outlined: decided; uncolored: undecided, or nothing"


def _show(ax: Axes, image: np.ndarray) -> None:
    ax.imshow(np.clip(image, 0, 1), interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_linewidth(0.4)


def _label(ax: Axes, text: str) -> None:
    ax.set_xlabel(text, fontsize=7, labelpad=2)
