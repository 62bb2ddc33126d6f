"""The report on one image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protopfaith.explanation.decomposition import Decomposition
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.regions import RegionValues
from protopfaith.show.bars import Bars, Term, share_bars, sum_bars
from protopfaith.show.heat import activation_limits, maps_of, scale_of
from protopfaith.show.pages import render_page, write_page
from protopfaith.show.pictures import Meaning, Picture, Pictures
from protopfaith.show.settings import settings_of
from protopfaith.show.wording.decision import how_sure, lead
from protopfaith.show.wording.glossary import WORDS
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.trust import LIMITS, banners, remarks

SIMILAR = Meaning(
    "in similarity", "It makes the image more like the prototype.", "It makes the image less like it."
)
MOST_PROBABLE = 5
DECIDED = "Colored and outlined: decided. Uncolored: undecided, or nothing."
UNKNOWN = "This estimator gives no errors, so every region is colored."
Captioned = tuple[Picture, str]


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
    picture: Picture
    legend: Legend
    sentence: str


@dataclass(frozen=True)
class Prototype:
    """A prototype of the report."""

    name: str
    score: str
    facts: dict[str, str]
    sides: dict[str, tuple[Captioned, ...]]  # heading to pictures
    duplicate: bool


def write_report(explanation: Explanation, path: Path | str) -> Path:
    """Writes the page to `path` (.html), whole or not at all."""
    return write_page(path, "case.html", **_view(explanation))


def render_report(explanation: Explanation) -> str:
    """The page as text."""
    return render_page("case.html", **_view(explanation))


def make_legend(regions: RegionValues, scale: float, minus: str, plus: str) -> Legend:
    """The legend of a map, which says what uncolored means."""
    return Legend(f"−{scale:.3g}", f"+{scale:.3g}", minus, plus, DECIDED if regions.errors_known else UNKNOWN)


def _view(explanation: Explanation) -> dict[str, Any]:
    """All that the template shows."""
    pictures = Pictures()
    shown = explanation.evidence
    scale = scale_of(maps_of(shown))
    return {
        "name": explanation.name,
        "title": explanation.title,
        "lead": lead(explanation),
        "chips": how_sure(explanation),
        "banners": banners(explanation),
        "original": pictures.plain(explanation.original, "The image"),
        "outputs": [_output(explanation, pictures)],
        "probabilities": _probabilities(explanation),
        "sums": _sums(explanation),
        "legend": make_legend(shown[0].test, scale, "less similar", "more similar"),
        "prototypes": [_prototype(explanation, one, scale, pictures) for one in shown],
        "with_duplicates": any(one.duplicate_of is not None for one in shown),
        "remarks": remarks(explanation),
        "limits": LIMITS,
        "settings": settings_of(explanation),
        "words": WORDS,
        "shared": pictures,
        "data": pictures.data(),
    }


def _output(explanation: Explanation, pictures: Pictures) -> Output:
    target, regions = explanation.class_names[explanation.target], explanation.class_map
    rather = target
    if explanation.versus is not None:
        rather = f"{target} rather than {explanation.class_names[explanation.versus]}"
    meaning = Meaning("in the score", f"It speaks for {rather}.", f"It speaks against {target}.")
    scale = scale_of([regions])
    return Output(
        f"for {rather}",
        pictures.ours(explanation.original, regions, scale, f"What speaks for {rather}: a map", meaning),
        make_legend(regions, scale, "against", f"for {rather}"),
        f"All regions together add up to {regions.total:+.3g}.",
    )


def _probabilities(explanation: Explanation) -> Bars:
    p, names = explanation.probabilities, explanation.class_names
    shown = p.argsort(descending=True)[:MOST_PROBABLE].tolist()
    if explanation.target not in shown:
        shown[-1] = explanation.target
    return share_bars("Probabilities", [(names[c], float(p[c]), percent(float(p[c]))) for c in shown])


def _sums(explanation: Explanation) -> list[Bars]:
    tables = []
    if explanation.versus is None:
        name = explanation.class_names[explanation.target]
        tables.append(_sum(explanation, explanation.decomposition, f"log P({name})"))
    rival = explanation.class_names[explanation.runner_up.versus or 0]
    label = "Compared with " + ("" if explanation.versus is not None else "the next class, ") + rival
    return [*tables, _sum(explanation, explanation.runner_up, label)]


def _sum(explanation: Explanation, sum_: Decomposition, caption: str) -> Bars:
    terms = [
        Term(_prototype_name(explanation, sum_, prototype), term)
        for prototype, term in zip(sum_.prototypes.tolist(), sum_.weighted.tolist(), strict=True)
    ]
    if sum_.versus is None:
        # Both are large and nearly cancel; apart they would dwarf all that tells prototypes from one another.
        detail = f"other classes' prototypes {sum_.rest:+.4g}, normalizer {-sum_.log_normalizer:+.4g}"
        terms.append(Term("all other classes, normalized", sum_.rest - sum_.log_normalizer, detail))
    elif len(explanation.class_names) > 2:  # of two classes both stand in the rows above
        terms.append(Term("prototypes of all other classes", sum_.rest))
    return sum_bars(f"{caption} = the sum of", terms, Term("sum", sum_.total))


def _prototype_name(explanation: Explanation, sum_: Decomposition, prototype: int) -> str:
    if sum_.versus is None:
        return f"prototype {prototype}"
    owners = {one.prototype: one.class_name for one in explanation.evidence}
    return f"prototype {prototype} ({owners.get(prototype, explanation.class_names[sum_.versus])})"


def _prototype(
    explanation: Explanation, one: PrototypeEvidence, scale: float, pictures: Pictures
) -> Prototype:
    limits = activation_limits(explanation.evidence)
    name, pixels, side = f"Prototype {one.prototype}", explanation.pixels, one.source_side
    ours = pictures.ours(pixels, one.test, scale, f"{name}: what makes this image similar", SIMILAR)
    theirs = pictures.theirs(pixels, one.activation, limits, one.box, f"{name}: ProtoPNet's own map")
    sides: dict[str, tuple[Captioned, ...]] = {
        "On this image": ((ours, "what makes it similar"), (theirs, "ProtoPNet's own map"))
    }
    if side is not None:
        plain = pictures.plain(side.pixels, f"{name}: its source image {side.path}")
        ours = pictures.ours(side.pixels, side.regions, scale, f"{name}: what it is made of there", SIMILAR)
        alt = f"{name}: ProtoPNet's own map on its source image"
        theirs = pictures.theirs(side.pixels, side.activation, limits, side.box, alt)
        sides["On its source image"] = (
            (plain, "image"),
            (ours, "what it is made of"),
            (theirs, "ProtoPNet's own map"),
        )
    return Prototype(name, f"{one.paper_score:+.3f}", _facts(one), sides, one.duplicate_of is not None)


def _facts(one: PrototypeEvidence) -> dict[str, str]:
    facts = {"class": one.class_name, "distance": f"{one.distance:.3g}", "weight": f"{one.weight:+.3g}"}
    if one.source is not None:
        facts["source"] = f"{one.source.image}, row {one.source.row}, column {one.source.column}"
    if one.duplicate_of is not None:
        facts["note"] = f"{one.duplicate_kind} to prototype {one.duplicate_of}"
    return facts
