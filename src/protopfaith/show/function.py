"""The explanation of a function: its page, its figure, and what a notebook shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.explanation.function import ExplainedOutput, FunctionExplanation
from protopfaith.show.bars import Bars, Sum, Term, sum_bars
from protopfaith.show.colors import rgb
from protopfaith.show.encoding import data_uri, png
from protopfaith.show.figures import STYLE, draw_map, wrapped, write
from protopfaith.show.heat import decided, ends_of, error_of, scale_of
from protopfaith.show.notebook import SIDE, heat_uri
from protopfaith.show.pages import render_fragment, render_page, write_page
from protopfaith.show.pictures import Meaning, Pictures
from protopfaith.show.report import Output, make_legend
from protopfaith.show.sheet import Sheet
from protopfaith.show.wording.costs import cost, told_error
from protopfaith.show.wording.glossary import WORDS
from protopfaith.show.wording.numbers import asked
from protopfaith.show.wording.places import lies
from protopfaith.show.wording.sharpness import hard, sides, strength
from protopfaith.show.wording.trust import LIMITS, Remark
from protopfaith.show.wording.verdicts import Verdict, verdict_on

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GENERAL_LIMITS = LIMITS[:3]  # the others are about prototypes
INCHES, MARGIN, GAP = 1.9, 0.25, 0.2
TITLE, SMALL = 11, 7  # sizes of text in points
LINE = 1.35 / 72  # height of a line in inches, for each point of its size
NAME = 30  # letters of an output's name that there is room for under its map
UNITS = "in the output"
UNMOVED = "No region changes it."
DUST = 1e-6  # of an output: what floating point leaves of a zero


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
        "verdict": _verdict(explanation),
        "bars": _bars(explanation),
        "words": {key: WORDS[key] for key in ("player", "baseline", "shapley", "decided", "error")},
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
    """The output, what it is without the image, and where the difference comes from."""
    found = [f"What raises it {where}." for where in [lies(one.regions)] if where]
    found += [f"What lowers it {where}." for where in [lies(one.regions, sign=-1)] if where]
    where = " ".join(found) or "Where in the image that comes from is not clear yet: give a larger budget."
    where = UNMOVED if is_unmoved(one) else where
    value, empty = numbers(one)
    named = one.name if one.name.startswith("output") else f"the output {one.name}"
    return f"On this image {named} is {value}; with every region hidden it is {empty}. {where}"


def is_unmoved(one: ExplainedOutput) -> bool:
    """Whether no region changes an output, beyond the dust that floating point leaves."""
    return float(one.regions.values.abs().max()) <= DUST * max(abs(one.value), abs(one.empty))


def numbers(one: ExplainedOutput) -> tuple[str, str]:
    """The output on the image and on the empty one, without the dust that floating point leaves of a zero."""
    least = DUST * max(abs(one.value), abs(one.empty))
    first, second = (0.0 if abs(value) < least else value for value in (one.value, one.empty))
    return f"{first:.4g}", f"{second:.4g}"


def _output(explanation: FunctionExplanation, one: ExplainedOutput, pictures: Pictures) -> Output:
    scale = scale_of([one.regions])
    meaning = Meaning(UNITS, f"It raises {one.name}.", f"It lowers {one.name}.")
    picture = pictures.ours(explanation.pixels, one.regions, scale, lead(one), meaning)
    return Output(one.name, picture, make_legend([one.regions], "lowers", f"raises {one.name}"), adds_up(one))


def adds_up(one: ExplainedOutput) -> str:
    """What the values of a map add up to."""
    value, empty = numbers(one)
    return (
        f"All regions together add up to {one.regions.total:+.4g}: from {empty} with every region hidden to "
        f"{value} with none."
    )


def _bars(explanation: FunctionExplanation) -> list[Bars]:
    """What each output has on the image: its value without regions, and what the regions add."""
    return sum_bars(*(_sum(one) for one in explanation.outputs))


def _sum(one: ExplainedOutput) -> Sum:
    values = one.regions.evidence
    terms = [
        Term("every region hidden", one.empty, "The output on the baseline.", neutral=True),
        Term("regions that raise it", float(values.clamp_min(0).sum())),
        Term("regions that lower it", float(values.clamp_max(0).sum())),
    ]
    return Sum(one.name, terms, Term("sum: the output", one.value))


def remarks(explanation: FunctionExplanation) -> list[Remark]:
    """How far the maps can be trusted, sentence by sentence."""
    said = []
    for one in explanation.outputs:
        flat = one.regions.flat
        if not flat.errors_known:
            said.append(f"{one.name}: no errors are known.")
            continue
        if is_unmoved(one):
            said.append(f"{one.name}: no region changes it.")
            continue
        error, known = error_of(flat), sides(int(decided(flat).sum()), len(flat.values), "raise or lower it")
        strongly = f"How strongly they do is {strength(error)} (relative error {error:.3g})."
        said.append(f"{one.name}: {known} {strongly}")
    if explanation.precision_asked is not None and not explanation.reached:
        said.append(hard(explanation.evaluations, asked(explanation.precision_asked)))
    gap = max(abs(one.regions.gap) for one in explanation.outputs)
    said.append(f"Before it was redistributed, the sum of a map was off by {gap:.2g} at most.")
    return [Remark(sentence) for sentence in said]


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
    room = (1 + len(explanation.outputs)) * (INCHES + GAP)
    title = wrapped(explanation.title, TITLE, room)
    below = "\n".join(wrapped(line, SMALL, room) for line in _facts(explanation))
    with mpl.rc_context(STYLE):
        top = 0.15 + LINE * TITLE * len(title.splitlines())
        sheet = Sheet(2 * MARGIN + room, top + tall + 0.8 + LINE * SMALL * len(below.splitlines()))
        sheet.text(MARGIN, 0.12, title, TITLE, fontweight="bold")
        sheet.image(rgb(explanation.pixels), (MARGIN, top, INCHES, tall))
        sheet.text(MARGIN + INCHES / 2, top + tall + 0.05, explanation.name, 7, ha="center")
        for column, one in enumerate(explanation.outputs, start=1):
            left, scale = MARGIN + column * (INCHES + GAP), scale_of([one.regions])
            place = (left, top, INCHES, tall)
            draw_map(sheet, place, explanation.pixels, one.regions, scale, hatching=hatching)
            sheet.color_bar(
                (left + 0.2, top + tall + 0.08, INCHES - 0.4, 0.08),
                ends_of([one.regions]),
                label=_label(one),
                middle="0",
            )
        sheet.text(MARGIN, top + tall + 0.62, below, SMALL, linespacing=1.35)
        if path is not None:
            write(sheet.figure, path, dpi)
    return sheet.figure


def _label(one: ExplainedOutput) -> str:
    """What stands under a map, in two lines."""
    name = one.name if len(one.name) <= NAME else f"{one.name[: NAME - 1]}…"
    return wrapped(f"lowers and raises {name} ({numbers(one)[0]})", SMALL, INCHES)


def _facts(explanation: FunctionExplanation) -> tuple[str, str]:
    """How sharp the first map is, and how all of them were made."""
    errors, sharp = explanation.outputs[0].regions.standard_errors, _verdict(explanation)
    return f"{sharp.heading}. {sharp.text}", (
        f"{explanation.settings['players']}, baseline {explanation.baseline}, {cost(explanation)} "
        f"({explanation.method}), relative error {told_error(errors, explanation.precision)}."
    )


def _verdict(explanation: FunctionExplanation) -> Verdict:
    """How sharp the first map is."""
    first = explanation.outputs[0]
    if is_unmoved(first):
        return Verdict("Map", "empty", UNMOVED)
    found = verdict_on(first.regions, "raise or lower it", "do")
    sharper = " A larger budget sharpens it." if found.kind == "rough" else ""
    return replace(found, text=f"{found.text}{sharper}")


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
    return render_fragment("attribution.html", side=SIDE, maps=maps, trust=" ".join(_facts(explanation)))
