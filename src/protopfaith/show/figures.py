"""The paper's figure: for each prototype a block of two columns (test image, source image) and three rows."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from protopfaith import arguments
from protopfaith.arguments import finite_number, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.regions import RegionValues
from protopfaith.explanation.sources import SourceSide
from protopfaith.show.colors import PLAIN_STOPS, overlay, plain_colors, rgb
from protopfaith.show.heat import (
    activation_limits,
    decided,
    edges,
    ends_of,
    maps_of,
    scale_of,
    shown_evidence,
)
from protopfaith.show.outlines import LabelGrid
from protopfaith.show.plain import without_math
from protopfaith.show.sheet import Place, Sheet
from protopfaith.show.wording.costs import cost, told_error
from protopfaith.show.wording.decision import lead
from protopfaith.show.wording.findings import stands_for
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.outputs import in_favor, own_map
from protopfaith.show.wording.trust import banners, rough_prototypes
from protopfaith.show.wording.verdicts import Verdict, verdicts
from protopfaith.writing import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 1.18  # inches of a picture of a prototype
LARGE = 1.9  # inches of the image and its map
MARGIN, GAP = 0.25, 0.06
WORDS_LEFT = MARGIN + 2 * LARGE + 0.37
SPACING = 1.4  # of lines
LINE = 0.15  # inches of a line above a prototype
BLOCK, LEGEND = 3 * (SIDE + GAP) + 0.32 + 2 * LINE, 0.95  # inches; a block with two lines above it
NARROWEST, NARROWEST_BLOCK = 7.4, 1.6
FORMATS = (".png", ".pdf", ".svg")
STYLE: Any = {  # as matplotlib's rc_context takes it, whose types differ between versions
    "font.family": "DejaVu Sans",
    "text.usetex": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.4,
}
EDGES = {1: "#8f2a04", -1: "#0a3f78"}  # around what is decided, by its sign
STRONG, WEAK, CASING = 1.0, 0.55, 0.8  # points of these lines, and of the light one below them
ALERT = {"facecolor": "#fdeee4", "edgecolor": "#7a2600", "linewidth": 0.6, "pad": 3}
HEADING = 8.5  # points


@dataclass(frozen=True)
class _Scales:
    """One for all of our maps of prototypes, one for all of ProtoPNet's."""

    ours: float
    ends: tuple[str, str]  # of ours, in numbers
    low: float
    high: float
    hatching: bool


@dataclass(frozen=True)
class _Text:
    """Some lines of the header, below one another."""

    text: str
    size: float
    top: float
    look: dict[str, Any]

    @property
    def height(self) -> float:
        return (self.text.count("\n") + 1) * SPACING * self.size / 72


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

    whole_number(most, "The number of prototypes to draw", least=1)
    whole_number(columns, "The number of columns", least=1)
    shown = explanation.ranked[:most]
    columns = min(columns, len(shown))
    rows = -(-len(shown) // columns)
    sides = 1 + any(one.source_side is not None for one in shown)
    across = max(sides * (SIDE + GAP), NARROWEST_BLOCK) + MARGIN
    width = max(columns * across + MARGIN, NARROWEST)
    titles = [_title(explanation, one, place, across - MARGIN) for place, one in enumerate(shown)]
    block = BLOCK + LINE * max(title.count("\n") - 1 for title in titles)
    words = _words(explanation, width - MARGIN - WORDS_LEFT)
    header = max(LARGE + 0.75, words[-1].top + words[-1].height + 0.3)
    with mpl.rc_context(STYLE):
        sheet = Sheet(width, header + rows * block + LEGEND)
        _draw_header(sheet, explanation, words, hatching)
        maps = maps_of(shown)
        scales = _Scales(scale_of(maps), ends_of(maps), *activation_limits(shown), hatching)
        for place, evidence in enumerate(shown):
            row, column = divmod(place, columns)
            corner = (MARGIN + column * across, header + row * block)
            _draw_title(sheet, corner, titles[place], evidence)
            first = (corner[0], corner[1] + block - BLOCK + 0.22 + 2 * LINE)
            _draw_block(sheet, first, explanation, evidence, scales=scales)
        _draw_legend(sheet, header + rows * block, width, explanation, scales)
        if path is not None:
            write(sheet.figure, path, dpi)
    return sheet.figure


def check_format(name: str) -> None:
    """Raises if the suffix of a file name is no format of figures."""
    if Path(name).suffix.lower() not in FORMATS:
        raise ProtoPFaithError(
            f"A figure is written as {', '.join(FORMATS)}, not as {name}; choose one of them."
        )


def refuse_pictures(path: Path | str) -> None:
    """Raises if a figure would overwrite a picture or a document that matplotlib has not made."""
    path = arguments.path(path, "Where to write")
    try:
        theirs = path.is_file() and path.stat().st_size and b"atplotlib" not in path.read_bytes()
    except OSError:  # said by whoever writes
        return
    if theirs:
        raise ProtoPFaithError(
            f"{arguments.named(path)} is there already and no figure of ours, so it is not overwritten; give "
            "another name, such as why.png."
        )


def write(drawing: Figure, path: Path | str, dpi: int = 300) -> Path:
    """Saves a figure whole or not at all; the suffix says the format."""
    path = arguments.path(path, "Where to write")
    check_format(path.name or str(path))
    finite_number(dpi, "The resolution of a figure", least=10, most=2400)
    form = path.suffix[1:].lower()
    fast: dict[str, Any] = {"pil_kwargs": {"compress_level": 3}} if form == "png" else {}
    with atomic(path) as partial:
        without_math(drawing).savefig(partial, dpi=dpi, format=form, facecolor="white", **fast)
    return path


def _draw_header(sheet: Sheet, explanation: Explanation, words: list[_Text], hatching: bool) -> None:
    """The image beside the map of its class, with the map's own color bar, and the case in words."""
    regions, top = explanation.class_map, 0.15
    scale = scale_of([regions])
    sheet.image(rgb(explanation.pixels), (MARGIN, top, LARGE, LARGE))
    sheet.text(MARGIN + LARGE / 2, top + LARGE + 0.05, "the image", 7, ha="center")
    left = MARGIN + LARGE + 0.12
    draw_map(sheet, (left, top, LARGE, LARGE), explanation.pixels, regions, scale, hatching=hatching)
    favor = wrapped(f"against, and for {in_favor(explanation, explanation.output)}", 7, LARGE + 0.2)
    sheet.color_bar(
        (left + 0.2, top + LARGE + 0.06, LARGE - 0.4, 0.08),
        ends_of([regions]),
        label=favor,
        middle="0",
    )
    for one in words:
        sheet.text(WORDS_LEFT, one.top, one.text, one.size, linespacing=SPACING, **one.look)


def _words(explanation: Explanation, room: float) -> list[_Text]:
    """The case in words, wrapped to `room` inches, one below the other."""
    facts = "\n".join(wrapped(line, 7, room) for line in _facts(explanation))
    notes = [*banners(explanation), *rough_prototypes(explanation)]
    alerts = [f"{one.title}\n{wrapped(one.command, 7, room)}".strip() for one in notes]
    parts: list[tuple[str, float, dict[str, Any]]] = [
        (wrapped(explanation.title, 14, room), 14, {"fontweight": "bold"}),
        (wrapped(lead(explanation), 9, room), 9, {}),
        *(part for one in verdicts(explanation) for part in _verdict(one, room)),
        *((text, 7, {"color": "#7a2600", "bbox": ALERT}) for text in alerts),
        (facts, 7, {}),
    ]
    placed, top = [], 0.15
    for text, size, look in parts:
        placed.append(_Text(text, size, top, look))
        top += placed[-1].height + (0.02 if size == HEADING else 0.14)
    return placed


def _verdict(one: Verdict, room: float) -> list[tuple[str, float, dict[str, Any]]]:
    """A heading, and below it what it rests on."""
    said = [" ".join([one.text, *(chip.sentence for chip in one.chips)])]
    said += [one.command] if one.command else []
    look = {"color": "#7a2600"} if one.kind == "alert" else {}
    return [
        (wrapped(one.heading, HEADING, room), HEADING, {"fontweight": "bold", **look}),
        ("\n".join(wrapped(line, 7, room) for line in said), 7, look),
    ]


def wrapped(text: str, size: float, room: float) -> str:
    """Text of a size in lines of at most `room` inches: a letter takes about 0.58 of its size."""
    return "\n".join(textwrap.wrap(text, max(int(room / (0.58 * size / 72)), 16)))


def _facts(explanation: Explanation) -> list[str]:
    names, p = explanation.class_names, explanation.probabilities
    best = p.argsort(descending=True)[:3].tolist()
    if explanation.versus is not None and explanation.versus not in best:
        best[-1] = explanation.versus  # the class that it is compared with
    error = told_error(explanation.class_map.standard_errors, explanation.precision)
    return [
        f"{explanation.name}: " + ", ".join(f"{names[c]} {percent(float(p[c]))}" for c in best),
        f"{explanation.settings['players']}, baseline {explanation.baseline}",
        f"{cost(explanation)} ({explanation.method}), relative error {error} in the worst map",
    ]


def _title(explanation: Explanation, evidence: PrototypeEvidence, place: int, room: float) -> str:
    """What stands above a prototype, in lines of at most `room` inches."""
    name, whose = f"{place + 1}. prototype {evidence.prototype}", ""
    if explanation.findings:
        whose = f" ({stands_for(evidence.class_name, evidence.weight)})"
    elif explanation.versus is not None and evidence.class_name:
        whose = f" ({evidence.class_name})"
    same = evidence.duplicate_of
    said = _how_near(explanation, evidence) if same is None else f"same as prototype {same}"
    if "\n" in wrapped(name + whose, 8, room):
        name, whose = f"{name}\n", wrapped(whose.strip(), 8, room)
    return f"{name}{whose}\n{wrapped(said, 8, room)}"


def _draw_title(sheet: Sheet, corner: tuple[float, float], title: str, evidence: PrototypeEvidence) -> None:
    color = "black" if evidence.duplicate_of is None else "#888888"
    sheet.text(*corner, title, 8, color=color, linespacing=1.35)


def _draw_block(
    sheet: Sheet,
    corner: tuple[float, float],
    explanation: Explanation,
    evidence: PrototypeEvidence,
    *,
    scales: _Scales,
) -> None:
    (left, first), side = corner, evidence.source_side
    faded = evidence.duplicate_of is not None
    _draw_column(
        sheet,
        (left, first),
        explanation.pixels,
        evidence,
        evidence.test,
        scales=scales,
        faded=faded,
    )
    sheet.text(left + SIDE / 2, first - 0.04, "this image", 7, ha="center", va="bottom")
    for row, name in enumerate((_theirs(explanation), "image", "ours")):
        middle = first + row * (SIDE + GAP) + SIDE / 2
        sheet.text(left - 0.03, middle, name, 7, rotation=90, ha="right", va="center")
    if side is not None:
        right = left + SIDE + GAP
        _draw_column(sheet, (right, first), side.pixels, side, side.regions, scales=scales, faded=faded)
        sheet.text(right + SIDE / 2, first - 0.04, "its source", 7, ha="center", va="bottom")


def _how_near(explanation: Explanation, evidence: PrototypeEvidence) -> str:
    distance, share = f"distance {evidence.distance:.2f}", explanation.share_of(evidence.prototype)
    return distance if share is None else f"{distance}, evidence {share:+.2g}"


def _draw_column(
    sheet: Sheet,
    corner: tuple[float, float],
    pixels: Tensor,
    theirs: PrototypeEvidence | SourceSide,
    regions: RegionValues,
    *,
    scales: _Scales,
    faded: bool,
) -> None:
    """ProtoPNet's map, the image, and our map, one below the other; a duplicate says nothing new."""
    (left, top), opacity = corner, 0.25 if faded else 1.0
    places: list[Place] = [(left, top + row * (SIDE + GAP), SIDE, SIDE) for row in range(3)]
    image = rgb(pixels)
    heat = plain_colors(theirs.activation.numpy(), scales.low, scales.high)
    sheet.image(0.4 * image + 0.6 * heat, places[0], opacity=opacity)
    x0, y0, x1, y1 = theirs.box
    size = (image.shape[1], image.shape[0])
    sheet.lines([[(x0, y0), (x1, y0), (x1, y1), (x0, y1)]], places[0], size, color="white", width=0.9)
    sheet.image(image, places[1], opacity=opacity)
    draw_map(sheet, places[2], pixels, regions, scales.ours, hatching=scales.hatching, opacity=opacity)


def draw_map(
    sheet: Sheet,
    place: Place,
    pixels: Tensor,
    regions: RegionValues,
    scale: float,
    *,
    hatching: bool = False,
    opacity: float = 1.0,
) -> None:
    """Our map over the image: what is decided is colored and outlined, all else stays as it is."""
    regions = regions.flat
    labels = regions.players.labels.numpy()
    heat = overlay(shown_evidence(regions).numpy()[labels], scale)
    sheet.image(rgb(pixels) * (1 - heat[..., 3:]) + heat[..., :3] * heat[..., 3:], place, opacity=opacity)
    grid, size = LabelGrid.of(labels), (labels.shape[1], labels.shape[0])
    for edge in edges(regions, scale):
        borders, color = grid.borders(edge.members), EDGES[edge.sign]
        width = STRONG if edge.strong else WEAK
        sheet.lines(borders, place, size, color="white", width=width + CASING, opacity=0.85 * opacity)
        sheet.lines(borders, place, size, color=color, width=width, opacity=opacity, dashed=edge.sign < 0)
    sure = decided(regions).numpy()
    if hatching and not sure.all():
        sheet.hatch(grid.borders(~sure), place, size)


def _draw_legend(sheet: Sheet, top: float, width: float, explanation: Explanation, scales: _Scales) -> None:
    sheet.color_bar(
        (0.06 * width, top + 0.15, 0.4 * width, 0.1),
        scales.ends,
        label="ours: share in the similarity to a prototype\n" + _key(explanation),
        middle="0",
    )
    sheet.color_bar(
        (0.54 * width, top + 0.15, 0.4 * width, 0.1),
        (f"{scales.low:.3g}", f"{scales.high:.3g}"),
        label=f"{_theirs(explanation)}: up-scaled activation; box: around its brightest 5%",
        stops=PLAIN_STOPS,
    )


def _theirs(explanation: Explanation) -> str:
    """Whose map stands beside ours."""
    if explanation.findings:
        return "occurrence"
    return own_map(explanation).partition("'s own map")[0]


def _key(explanation: Explanation) -> str:
    if not explanation.class_map.errors_known:
        return "blue: less similar, orange: more similar\nno errors are known: every region is colored"
    return "blue, dashed: less similar; orange: more similar\nuncolored: not clear which"
