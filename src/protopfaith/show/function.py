"""The explanation of a function: its page, its figure, and what a notebook shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.explanation.function import ExplainedOutput, FunctionExplanation
from protopfaith.show.bars import Bars, Sum, Term, sum_bars
from protopfaith.show.colors import rgb
from protopfaith.show.encoding import data_uri, png
from protopfaith.show.figures import STYLE, draw_map, write
from protopfaith.show.heat import decided, error_of, scale_of
from protopfaith.show.notebook import SIDE, heat_uri
from protopfaith.show.pages import render_fragment, render_page, write_page
from protopfaith.show.pictures import Meaning, Pictures
from protopfaith.show.report import Output, make_legend
from protopfaith.show.sheet import Sheet
from protopfaith.show.wording.costs import cost, told_error
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.places import lies
from protopfaith.show.wording.sharpness import sides, strength
from protopfaith.show.wording.trust import LIMITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GENERAL_LIMITS = LIMITS[:3]  # the others are about prototypes
INCHES, MARGIN, GAP = 1.9, 0.25, 0.2
UNITS = "in the output"


def write_function_report(explanation: FunctionExplanation, path: Path | str) -> Path:
    """Writes the page to `path` (.html), whole or not at all."""
    return write_page(path, "function.html", **_view(explanation))


def render_function_report(explanation: FunctionExplanation) -> str:
    """The page as text."""
    return render_page("function.html", **_view(explanation))


def _view(explanation: FunctionExplanation) -> dict[str, Any]:
    pictures = Pictures()
    return {
        "name": explanation.name,
        "title": explanation.title,
        "lead": lead(explanation.outputs[0]),
        "original": pictures.plain(explanation.pixels, "The image, as the function sees it"),
        "outputs": [_output(explanation, one, pictures) for one in explanation.outputs],
        "bars": _bars(explanation),
        "remarks": remarks(explanation),
        "limits": GENERAL_LIMITS,
        "settings": {
            "regions": explanation.settings["players"],
            "baseline": explanation.baseline,
            "estimator": explanation.method,
            "cost": f"{cost(explanation)}, {explanation.seconds:.1f} seconds",
            "seed": explanation.settings["seed"],
        },
        "shared": pictures,
        "data": pictures.data(),
    }


def lead(one: ExplainedOutput) -> str:
    """The answer in one or two sentences."""
    found = [f"what raises it {where}" for where in [lies(one.regions)] if where]
    found += [f"what lowers it {where}" for where in [lies(one.regions, sign=-1)] if where]
    where = f"; {', '.join(found)}." if found else "; no region is clear yet: give a larger budget."
    return f"{one.name} is {one.value:.4g}, and {one.empty:.4g} without any region{where}"


def _output(explanation: FunctionExplanation, one: ExplainedOutput, pictures: Pictures) -> Output:
    scale = scale_of([one.regions])
    meaning = Meaning(UNITS, f"It raises {one.name}.", f"It lowers {one.name}.")
    picture = pictures.ours(explanation.pixels, one.regions, scale, lead(one), meaning)
    return Output(
        one.name, picture, make_legend(one.regions, scale, "lowers", f"raises {one.name}"), adds_up(one)
    )


def adds_up(one: ExplainedOutput) -> str:
    """What the values of a map add up to."""
    return (
        f"The values of all regions add up to {one.regions.total:+.4g}: from {one.empty:.4g} without any "
        f"region to {one.value:.4g} with all of them."
    )


def _bars(explanation: FunctionExplanation) -> Bars:
    """What each output has on the image: its value without regions, and what the regions add."""
    one = explanation.outputs[0]
    values = one.regions.evidence
    terms = [
        Term("no region", one.empty, "The output on the baseline.", neutral=True),
        Term("regions that raise it", float(values.clamp_min(0).sum())),
        Term("regions that lower it", float(values.clamp_max(0).sum())),
    ]
    return sum_bars(Sum(one.name, terms, Term("sum: the output", one.value)))[0]


def remarks(explanation: FunctionExplanation) -> list[str]:
    """How far the maps can be trusted, sentence by sentence."""
    said = []
    for one in explanation.outputs:
        flat = one.regions.flat
        if not flat.errors_known:
            said.append(f"{one.name}: no errors are known.")
            continue
        error, known = error_of(flat), sides(int(decided(flat).sum()), len(flat.values), "raise or lower it")
        said.append(
            f"{one.name}: {known} How strongly they do is {strength(error)} (relative error {error:.3g})."
        )
    if explanation.precision_asked is not None and not explanation.reached:
        asked = percent(explanation.precision_asked)
        said.append(f"The precision asked for, ±{asked}, was not reached; give a larger budget.")
    gap = max(abs(one.regions.gap) for one in explanation.outputs)
    said.append(f"Before it was redistributed, the sum of a map was off by {gap:.2g} at most.")
    return said


def function_figure(
    explanation: FunctionExplanation,
    path: Path | str | None = None,
    *,
    dpi: int = 300,
    hatching: bool = False,
) -> Figure:
    """Draws the image and one map for each output, side by side.

    Args:
        explanation: what to draw
        path: where to write it, as .png, .pdf or .svg; nowhere by default
        dpi: resolution of a PNG
        hatching: whether to hatch undecided regions
    """
    import matplotlib as mpl

    height, width = explanation.pixels.shape[-2:]
    tall = INCHES * height / width
    columns = 1 + len(explanation.outputs)
    with mpl.rc_context(STYLE):
        sheet = Sheet(2 * MARGIN + columns * (INCHES + GAP), tall + 1.35)
        top = 0.45
        sheet.text(MARGIN, 0.12, explanation.title, 11, fontweight="bold")
        sheet.image(rgb(explanation.pixels), (MARGIN, top, INCHES, tall))
        sheet.text(MARGIN + INCHES / 2, top + tall + 0.05, explanation.name, 7, ha="center")
        for column, one in enumerate(explanation.outputs, start=1):
            left, scale = MARGIN + column * (INCHES + GAP), scale_of([one.regions])
            place = (left, top, INCHES, tall)
            draw_map(sheet, place, explanation.pixels, one.regions, scale, hatching=hatching)
            sheet.color_bar(
                (left + 0.2, top + tall + 0.08, INCHES - 0.4, 0.08),
                (f"−{scale:.3g}", f"+{scale:.3g}"),
                label=f"{one.name}: {one.value:.4g}",
                middle="0",
            )
        sheet.text(MARGIN, top + tall + 0.62, _facts(explanation), 7)
        if path is not None:
            write(sheet.figure, path, dpi)
    return sheet.figure


def _facts(explanation: FunctionExplanation) -> str:
    errors = explanation.outputs[0].regions.standard_errors
    return (
        f"{explanation.settings['players']}, baseline {explanation.baseline}, {cost(explanation)} "
        f"({explanation.method}), relative error {told_error(errors, explanation.precision)}. Uncolored: "
        "not clear yet."
    )


def function_html(explanation: FunctionExplanation) -> str:
    """What a notebook shows: the image and a map of each output."""
    maps = [{"image": data_uri(png(rgb(explanation.pixels))), "caption": explanation.name}]
    for one in explanation.outputs:
        scale = scale_of([one.regions])
        maps.append(
            {
                "image": heat_uri(explanation.pixels, one.regions, scale),
                "caption": f"{one.name}: {one.value:.4g}, ±{scale:.3g} at most",
            }
        )
    return render_fragment("attribution.html", side=SIDE, maps=maps, trust=_facts(explanation))
