"""The report on one image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protopfaith.explanation.decomposition import Decomposition
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.show.bars import Bars, make_bar, sum_bars
from protopfaith.show.colors import scale_of
from protopfaith.show.figures import activation_limits, maps_of
from protopfaith.show.pages import render_page, write_page
from protopfaith.show.pictures import Meaning, Picture, Pictures
from protopfaith.show.wording.costs import cost
from protopfaith.show.wording.decision import lead
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.trust import LIMITS, remarks

SIMILAR = Meaning(
    "in similarity", "It makes the image more like the prototype.", "It makes the image less like it."
)
MOST_PROBABLE = 5
Captioned = tuple[Picture, str]


def write_report(explanation: Explanation, path: Path | str) -> Path:
    """Writes the page to `path` (.html), whole or not at all."""
    return write_page(path, "case.html", **_view(explanation))


def render_report(explanation: Explanation) -> str:
    """The page as text."""
    return render_page("case.html", **_view(explanation))


def _view(explanation: Explanation) -> dict[str, Any]:
    """All that the template shows."""
    pictures = Pictures()
    scale = scale_of(maps_of(explanation.evidence))
    return {
        "name": explanation.name,
        "title": explanation.title,
        "lead": lead(explanation),
        "scale": f"{scale:.3g}",
        "class_picture": _class_picture(explanation, pictures),
        "class_note": _class_note(explanation),
        "sums": [_probabilities(explanation), *_sums(explanation)],
        "prototypes_note": _prototypes_note(explanation),
        "prototypes": [_prototype(explanation, one, scale, pictures) for one in explanation.evidence],
        "remarks": remarks(explanation),
        "limits": LIMITS,
        "settings": _settings(explanation),
        "data": pictures.data(),
    }


def _class_picture(explanation: Explanation, pictures: Pictures) -> Picture:
    target = explanation.class_names[explanation.target]
    against = ""
    if explanation.versus is not None:
        against = f" rather than {explanation.class_names[explanation.versus]}"
    meaning = Meaning(
        "in the class's score", f"It speaks for {target}{against}.", f"It speaks against {target}."
    )
    regions = explanation.class_map
    return pictures.ours(
        explanation.original, regions, scale_of([regions]), "The image with the class map", meaning
    )


def _class_note(explanation: Explanation) -> str:
    scale = scale_of([explanation.class_map])
    how = (
        "the weighted sum of the maps of all prototypes"
        if explanation.network["similarity"] == "linear"
        else "from a game on the logit itself, since log similarity does not add up"
    )
    errors = " and standard error" if explanation.class_map.errors_known else ""
    return (
        "Orange regions speak for the class, blue ones against it; "
        f"the strongest color is ±{scale:.3g} in the class's score (logit). "
        f"The map is {how}. Hover a region for its value{errors}."
    )


def _probabilities(explanation: Explanation) -> Bars:
    p, names = explanation.probabilities, explanation.class_names
    shown = p.argsort(descending=True)[:MOST_PROBABLE].tolist()
    if explanation.target not in shown:
        shown[-1] = explanation.target
    rows = [make_bar(names[c], float(p[c]), 1.0, percent(float(p[c])), zero=0.0) for c in shown]
    return Bars("Probabilities", tuple(rows))


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
        (_prototype_name(explanation, sum_, prototype), term, "")
        for prototype, term in zip(sum_.prototypes.tolist(), sum_.weighted.tolist(), strict=True)
    ]
    if sum_.versus is None:
        # Both are large and nearly cancel; apart they would dwarf all that tells prototypes from one another.
        detail = f"other classes' prototypes {sum_.rest:+.4g}, normalizer {-sum_.log_normalizer:+.4g}"
        terms.append(("all other classes, normalized", sum_.rest - sum_.log_normalizer, detail))
    elif len(explanation.class_names) > 2:  # of two classes both stand in the rows above
        terms.append(("prototypes of all other classes", sum_.rest, ""))
    return sum_bars(f"{caption} = the sum of", terms, sum_.total)


def _prototype_name(explanation: Explanation, sum_: Decomposition, prototype: int) -> str:
    if sum_.versus is None:
        return f"prototype {prototype}"
    owners = {one.prototype: one.class_name for one in explanation.evidence}
    return f"prototype {prototype} ({owners.get(prototype, explanation.class_names[sum_.versus])})"


def _prototypes_note(explanation: Explanation) -> str:
    text = (
        "A prototype is a part of one training image, its source. Ranked by the paper's contribution Ψₖ. "
        "Heat maps show similarity: a region whose share in the distance is negative brings the image closer "
        "to the prototype and is orange. All of our maps share one scale; "
        "the white box is ProtoPNet's 95th percentile."
    )
    if any(one.duplicate_of is not None for one in explanation.evidence):
        text += " Prototypes that repeat another one are grayed."
    return text


@dataclass(frozen=True)
class Prototype:
    """A prototype of the report."""

    name: str
    score: str
    facts: dict[str, str]
    sides: dict[str, tuple[Captioned, ...]]  # heading to pictures
    duplicate: bool


def _prototype(
    explanation: Explanation, one: PrototypeEvidence, scale: float, pictures: Pictures
) -> Prototype:
    limits = activation_limits(explanation.evidence)
    name, pixels = f"Prototype {one.prototype}", explanation.pixels
    ours = pictures.ours(pixels, one.test, scale, f"{name}, our map on the test image", SIMILAR)
    alt = f"{name}, ProtoPNet's map on the test image"
    theirs = pictures.theirs(pixels, one.activation, limits, one.box, alt)
    sides = {"On this image": _captioned(pictures.plain(pixels, "The test image"), ours, theirs)}
    side = one.source_side
    if side is not None:
        ours = pictures.ours(
            side.pixels, side.regions, scale, f"{name}, our map on its source image", SIMILAR
        )
        alt = f"{name}, ProtoPNet's map on its source image"
        theirs = pictures.theirs(side.pixels, side.activation, limits, side.box, alt)
        plain = pictures.plain(side.pixels, f"The source image {side.path}")
        sides["On its source image"] = _captioned(plain, ours, theirs)
    return Prototype(name, f"{one.paper_score:+.3f}", _facts(one), sides, one.duplicate_of is not None)


def _captioned(plain: Picture, ours: Picture, theirs: Picture) -> tuple[Captioned, ...]:
    return (plain, "image"), (ours, "ours"), (theirs, "ProtoPNet's")


def _facts(one: PrototypeEvidence) -> dict[str, str]:
    facts = {"class": one.class_name, "distance": f"{one.distance:.4g}", "weight": f"{one.weight:+.4g}"}
    facts["adds to the sum"] = f"{one.weight * one.similarity:+.4g}"
    if one.source is not None:
        facts["source"] = f"{one.source.image}, row {one.source.row}, column {one.source.column}"
    if one.duplicate_of is not None:
        facts["note"] = f"{one.duplicate_kind} to prototype {one.duplicate_of}"
    return facts


def _settings(explanation: Explanation) -> dict[str, str]:
    height, width = explanation.original_size
    asked, network = explanation.settings, explanation.network
    estimator = [
        explanation.method,
        *(f"{name}={value}" for name, value in asked.get("options", {}).items()),
        cost(explanation),
        f"seed {asked['seed']}",
        f"in {asked.get('autocast') or 'full precision'}",
    ]
    seen = f"{explanation.pixels.shape[2]} x {explanation.pixels.shape[1]}"
    return {
        "image": f"{explanation.name}, {width} x {height} pixels, seen by the network at {seen}",
        "players": asked["players"],
        "baseline": explanation.baseline,
        "estimator": ", ".join(estimator),
        "network": f"{network['encoder'] or 'own encoder'}, {network['prototypes']} prototypes, "
        f"{network['similarity']} similarity",
        "weights (SHA-256)": network["weights_sha256"],
    }
