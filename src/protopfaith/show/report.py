"""The report on one image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.regions import RegionValues
from protopfaith.show.findings import finding_cards
from protopfaith.show.heat import activation_limits, ends_of, maps_of, scale_of
from protopfaith.show.pages import render_page, write_page
from protopfaith.show.pictures import DrawnPicture, Meaning, Pictures
from protopfaith.show.settings import settings_of
from protopfaith.show.sums import complete_sums, evidence_bars, probability_bars
from protopfaith.show.tree import tree_view
from protopfaith.show.wording.decision import about_mask, deciding, lead
from protopfaith.show.wording.findings import stands_for
from protopfaith.show.wording.glossary import TREE_WORDS, WORDS
from protopfaith.show.wording.outputs import (
    adds_up,
    in_favor,
    maps_by_output,
    output_name,
    own_map,
    where_heading,
)
from protopfaith.show.wording.places import lies
from protopfaith.show.wording.trust import banners, limits, remarks, rough_prototypes
from protopfaith.show.wording.verdicts import verdicts

SIMILAR = Meaning(
    "in similarity", "It makes the image more like the prototype.", "It makes the image less like it."
)
CLEAR = "Colored: the side is clear (thick line: strongest; dashed: {minus}). Uncolored: it is not."
NOTHING = "Uncolored: of no region is it clear on which side it stands."
UNKNOWN = "This estimator gives no errors, so every region is colored."
Captioned = tuple[DrawnPicture, str]


@dataclass(frozen=True)
class Legend:
    """Both ends of a map's scale, in numbers and in words."""

    low: str
    high: str
    minus: str
    plus: str
    key: str = ""


@dataclass(frozen=True)
class Output:
    """One of the maps that the report offers: of what, the map, its legend, and what it adds up to."""

    name: str
    picture: DrawnPicture
    legend: Legend
    sentence: str


@dataclass(frozen=True)
class Prototype:
    """A prototype of the report."""

    name: str
    share: str  # its evidence; nothing where the average training image is not known
    facts: dict[str, str]
    sides: dict[str, tuple[Captioned, ...]]  # heading to pictures
    duplicate: bool


def write_report(explanation: Explanation, path: Path | str) -> Path:
    """Writes the page to `path` (.html), whole or not at all."""
    return write_page(path, "case.html", **_view(explanation))


def render_report(explanation: Explanation) -> str:
    """The page as text."""
    return render_page("case.html", **_view(explanation))


def make_legend(maps: Sequence[RegionValues], minus: str, plus: str) -> Legend:
    """The legend of maps that share a scale, which says what uncolored means; no numbers where all is."""
    low, high = ends_of(maps)
    clear = CLEAR.format(minus=minus) if maps[0].errors_known else UNKNOWN
    return Legend(low, high, minus, plus, clear if high else NOTHING)


def _view(explanation: Explanation) -> dict[str, Any]:
    """All that the template shows."""
    pictures = Pictures()
    shown = explanation.ranked
    scale = scale_of(maps_of(shown))
    return {
        "name": explanation.name,
        "title": explanation.title,
        "where": where_heading(explanation),
        "lead": lead(explanation),
        "named": _named(explanation, pictures),
        "unseen": _unseen(explanation),
        "verdicts": verdicts(explanation),
        "banners": banners(explanation),
        "rough_prototypes": rough_prototypes(explanation),
        "original": _original(explanation, pictures),
        "about_mask": about_mask(explanation),
        "outputs": [
            _output(explanation, output, regions, pictures)
            for output, regions in maps_by_output(explanation).items()
        ],
        "unfamiliar": explanation.is_unfamiliar,
        "explains_log": explanation.output == "log_probability",
        "probabilities": probability_bars(explanation),
        "evidence": evidence_bars(explanation),
        "sums": complete_sums(explanation),
        "psi": {one.prototype: f"{one.paper_score:+.3f}" for one in shown if math.isfinite(one.paper_score)},
        "tree": tree_view(explanation, scale, pictures),
        "legend": make_legend(maps_of(shown), "less similar", "more similar"),
        "own_map": own_map(explanation),
        "prototypes": [_prototype(explanation, one, scale, pictures) for one in shown],
        "with_duplicates": any(one.duplicate_of is not None for one in shown),
        "remarks": remarks(explanation),
        "limits": limits(explanation),
        "findings": finding_cards(explanation.findings, explanation.target, explanation.pixels, pictures),
        "settings": settings_of(explanation),
        "words": _words(explanation),
        "shared": pictures,
        "data": pictures.data(),
    }


def _words(explanation: Explanation) -> dict[str, tuple[str, str]]:
    """The glossary, as far as this network needs it."""
    words = {**WORDS, **TREE_WORDS} if explanation.route is not None else dict(WORDS)
    if explanation.decomposition is None or explanation.findings:
        del words["psi"]
    return words


def _original(explanation: Explanation, pictures: Pictures) -> DrawnPicture:
    """The image as it was given, with a line around the object where that is known."""
    if explanation.mask is None:
        return pictures.plain(explanation.original, "The image")
    return pictures.bordered(explanation.original, "The image, with the object's border", explanation.mask)


def _named(explanation: Explanation, pictures: Pictures) -> Captioned | None:
    """The prototype that the answer names, as the part of its source image that it is; None where no source
    image is shown."""
    best = deciding(explanation)
    side = None if best is None else best.on_source
    if best is None or side is None:
        return None
    name = f"Prototype {best.prototype}"
    if best.source is not None and not best.source.exact:
        alike = pictures.cropped(side.pixels, f"{name}: the part of {side.path} nearest to it", side.box)
        return alike, f"The part of a training image nearest to prototype {best.prototype}"
    part = pictures.cropped(side.pixels, f"{name}: the part of {side.path} that it is", side.box)
    return part, f"{name}, a part of a training image"


def _unseen(explanation: Explanation) -> str:
    """That the prototype that the answer names is not shown, and why; nothing where it is."""
    best = deciding(explanation)
    if best is None or best.on_source is not None:
        return ""
    why = "its source image is not known" if best.source is None else "this report has no source images"
    return f"Prototype {best.prototype} itself is not shown: {why}."


def _output(explanation: Explanation, output: str, regions: RegionValues, pictures: Pictures) -> Output:
    favor, scale = in_favor(explanation, output), scale_of([regions])
    unit = "in the log probability" if output == "log_probability" else "in the score"
    meaning = Meaning(unit, f"It speaks for {favor}.", f"It speaks against {favor}.")
    alt = f"Map of what speaks for {favor}{_places(regions)}"
    return Output(
        output_name(explanation, output),
        pictures.ours(explanation.original, regions, scale, alt, meaning),
        make_legend([regions], "against", f"for {favor}"),
        adds_up(explanation, output, regions),
    )


def _places(regions: RegionValues) -> str:
    """Where the map is orange and blue, for those who cannot see it."""
    found = {"for it": lies(regions), "against it": lies(regions, sign=-1)}
    said = [f"what speaks {what} {where}" for what, where in found.items() if where]
    return f": {'; '.join(said)}" if said else ": nothing is clear yet"


def _prototype(
    explanation: Explanation, one: PrototypeEvidence, scale: float, pictures: Pictures
) -> Prototype:
    limits = activation_limits(explanation.evidence)
    name, pixels, side = f"Prototype {one.prototype}", explanation.pixels, one.source_side
    ours = pictures.ours(pixels, one.test, scale, f"{name}: what makes this image similar", SIMILAR)
    own = own_map(explanation)
    theirs = pictures.theirs(pixels, one.activation, limits, one.box, f"{name}: {own}")
    sides: dict[str, tuple[Captioned, ...]] = {
        "On this image": ((ours, "what makes it similar"), (theirs, own))
    }
    exact = one.source is None or one.source.exact
    if side is not None:
        plain = pictures.plain(side.pixels, f"{name}: its source image {side.path}")
        ours = pictures.ours(side.pixels, side.regions, scale, f"{name}: what it sees there", SIMILAR)
        alt = f"{name}: {own} on its source image"
        theirs = pictures.theirs(side.pixels, side.activation, limits, side.box, alt)
        sides["On its source image" if exact else "On the training image nearest to it"] = (
            (plain, "image"),
            (ours, "what it sees"),
            (theirs, own),
        )
    elif one.source_part is not None:
        part = one.source_part
        which, source = ("that it is", "its source") if exact else ("nearest to it", "what is nearest to it")
        itself = pictures.boxed(part.pixels, f"{name}: the part of {part.path} {which}", part.box)
        shown = sides.pop("On this image")
        sides[f"On this image, and {source}"] = (*shown, (itself, f"{source} image" if exact else which))
    facts = _facts(one)
    if explanation.findings:
        facts = {"stands for": stands_for(one.class_name, one.weight), **facts}
        del facts["class"]
    return Prototype(name, _share(explanation, one), facts, sides, one.duplicate_of is not None)


def _share(explanation: Explanation, one: PrototypeEvidence) -> str:
    """Its bar's number, for the class that it belongs to."""
    for found in (explanation.closeness, explanation.rival_closeness):
        if found is not None and one.prototype in found.prototypes.tolist():
            place = found.prototypes.tolist().index(one.prototype)
            return f"{float(found.shares[place]):+.3g}"
    return ""


def _facts(one: PrototypeEvidence) -> dict[str, str]:
    facts = {"class": one.class_name} if one.class_name else {}
    facts["distance"] = f"{one.distance:.3g}"
    if math.isfinite(one.weight):
        facts["weight"] = f"{one.weight:+.3g}"
    if one.source is not None:
        kind = "source" if one.source.exact else "nearest patch"
        facts[kind] = f"{one.source.image}, row {one.source.row}, column {one.source.column}"
    if one.duplicate_of is not None:
        facts["note"] = f"{one.duplicate_kind} to prototype {one.duplicate_of}"
    return facts
