"""The report on one image."""

from __future__ import annotations

from html import escape
from pathlib import Path

from protopfaith.explanation.decomposition import Decomposition
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.files import atomic
from protopfaith.show.colors import STOPS, scale_of
from protopfaith.show.figures import activation_limits, maps_of
from protopfaith.show.page import fill, render_page
from protopfaith.show.pictures import Pictures
from protopfaith.show.trust import cost
from protopfaith.show.wording import faithful, lead, percent

SIMILAR = ("in similarity", "It makes the image more like the prototype.", "It makes the image less like it.")
MOST_PROBABLE = 5


def write_report(explanation: Explanation, path: Path | str) -> Path:
    """Writes the page to `path` (.html), whole or not at all."""
    path = Path(path)
    page = render_report(explanation)
    with atomic(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return path


def render_report(explanation: Explanation) -> str:
    """The page as text."""
    pictures = Pictures()
    scale = scale_of(maps_of(explanation.evidence))
    body = fill(
        "case.html",
        name=escape(explanation.name),
        title=escape(explanation.title),
        lead=lead(explanation),
        toolbar=toolbar(scale),
        class_picture=_class_picture(explanation, pictures),
        class_note=_class_note(explanation),
        probabilities=_probabilities(explanation),
        sums=_sums(explanation),
        prototypes_note=_prototypes_note(explanation),
        prototypes="".join(
            _prototype(explanation, one, place, scale, pictures)
            for place, one in enumerate(explanation.evidence)
        ),
        faithful=faithful(explanation),
        settings=_settings(explanation),
    )
    return render_page(f"{explanation.title} {explanation.name}", body, pictures.data())


def toolbar(scale: float) -> str:
    """How maps are shown, and what their colors mean."""
    return fill("toolbar.html", scale=f"{scale:.3g}", colors=",".join(STOPS))


def _class_picture(explanation: Explanation, pictures: Pictures) -> str:
    target = escape(explanation.class_names[explanation.target])
    against = (
        ""
        if explanation.versus is None
        else f" rather than {escape(explanation.class_names[explanation.versus])}"
    )
    words = ("in the class's score", f"It speaks for {target}{against}.", f"It speaks against {target}.")
    regions = explanation.class_map
    return pictures.ours(
        explanation.original, regions, scale_of([regions]), "The image with the class map", words
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
        "Orange regions speak for the class, blue ones against it; the strongest color is "
        f"&plusmn;{scale:.3g} in the "
        f"class's score (logit). The map is {how}. Hover a region for its value{errors}."
    )


def _probabilities(explanation: Explanation) -> str:
    p, names = explanation.probabilities, explanation.class_names
    shown = p.argsort(descending=True)[:MOST_PROBABLE].tolist()
    if explanation.target not in shown:
        shown[-1] = explanation.target
    rows = [_row(names[c], float(p[c]), 1.0, percent(float(p[c])), start=0.0) for c in shown]
    return f'<table class="bars"><caption>Probabilities</caption>{"".join(rows)}</table>'


def _sums(explanation: Explanation) -> str:
    tables = []
    if explanation.versus is None:
        name = escape(explanation.class_names[explanation.target])
        tables.append(_sum_table(explanation, explanation.decomposition, f"log P({name})"))
    rival = escape(explanation.class_names[explanation.runner_up.versus or 0])
    label = "Compared with " + ("" if explanation.versus is not None else "the next class, ") + rival
    tables.append(_sum_table(explanation, explanation.runner_up, label))
    return "".join(tables)


def _sum_table(explanation: Explanation, sum_: Decomposition, caption: str) -> str:
    """Rows of bars that add up to the last one."""
    terms = list(zip(sum_.prototypes.tolist(), sum_.weighted.tolist(), strict=True))
    rows = [(_prototype_name(explanation, sum_, p), term) for p, term in terms]
    if sum_.versus is None:
        # Both are large and nearly cancel; apart they would dwarf everything that tells prototypes from
        # one another.
        detail = f"other classes' prototypes {sum_.rest:+.4g}, normalizer {-sum_.log_normalizer:+.4g}"
        rows.append(
            (f'<span title="{detail}">all other classes, normalized</span>', sum_.rest - sum_.log_normalizer)
        )
    elif len(explanation.class_names) > 2:  # of two classes both stand in the rows above
        rows.append(("prototypes of all other classes", sum_.rest))
    span = max([abs(value) for _, value in rows] + [abs(sum_.total), 1e-12])
    cells = "".join(_row(label, value, span, f"{value:+.3f}", raw=True) for label, value in rows)
    total = _row("sum", sum_.total, span, f"{sum_.total:+.3f}", raw=True, kind="total")
    return f'<table class="bars"><caption>{caption} = the sum of</caption>{cells}{total}</table>'


def _prototype_name(explanation: Explanation, sum_: Decomposition, prototype: int) -> str:
    owners = {one.prototype: one.class_name for one in explanation.evidence}
    rival = explanation.class_names[sum_.versus] if sum_.versus is not None else ""
    owner = owners.get(prototype, rival)
    return f"prototype {prototype}" + (f" ({escape(owner)})" if sum_.versus is not None else "")


def _row(
    label: str,
    value: float,
    span: float,
    shown: str,
    *,
    start: float = 0.5,
    raw: bool = False,
    kind: str = "",
) -> str:
    """A label, a bar from zero (at `start` of the track), and the number."""
    width = min(abs(value) / span, 1) * (1 - start)
    left = start if value >= 0 else start - width
    sign = "plus" if value >= 0 else ""
    text = label if raw else escape(label)
    return (
        f'<tr class="{kind}"><td>{text}</td><td class="track"><div class="bar"><i class="{sign}" '
        f'style="left:{100 * left:.2f}%;width:{100 * width:.2f}%"></i><b '
        f'style="left:{100 * start:.0f}%"></b></div></td>'
        f'<td class="number">{shown}</td></tr>'
    )


def _prototypes_note(explanation: Explanation) -> str:
    text = (
        "A prototype is a part of one training image, its source. Ranked by the paper's contribution "
        "Ψ<sub>k</sub>. Heat "
        "maps show similarity: a region whose share in the distance is negative brings the image closer to "
        "the prototype "
        "and is orange. All of our maps share one scale; the white box is ProtoPNet's 95th percentile."
    )
    if any(one.duplicate_of is not None for one in explanation.evidence):
        text += " Prototypes that repeat another one are grayed."
    return text


def _prototype(
    explanation: Explanation, one: PrototypeEvidence, place: int, scale: float, pictures: Pictures
) -> str:
    limits = activation_limits(explanation.evidence)
    name = f"Prototype {one.prototype}"
    test = _side(
        "On this image",
        pictures.ours(explanation.pixels, one.test, scale, f"{name}, our map on the test image", SIMILAR),
        pictures.theirs(
            explanation.pixels, one.activation, limits, one.box, f"{name}, ProtoPNet's map on the test image"
        ),
        pictures.plain(explanation.pixels, "The test image"),
    )
    side = one.source_side
    source = ""
    if side is not None:
        source = _side(
            "On its source image",
            pictures.ours(side.pixels, side.regions, scale, f"{name}, our map on its source image", SIMILAR),
            pictures.theirs(
                side.pixels, side.activation, limits, side.box, f"{name}, ProtoPNet's map on its source image"
            ),
            pictures.plain(side.pixels, f"The source image {side.path}"),
        )
    kind = " duplicate" if one.duplicate_of is not None else ""
    return (
        f'<article class="prototype{kind}"><div><h3>{place + 1}. {name}</h3>'
        f'<div class="score">Ψ<sub>k</sub> = {one.paper_score:+.3f}</div>{_facts(one)}</div>'
        f'<div class="sides">{test}{source}</div></article>'
    )


def _side(title: str, ours: str, theirs: str, plain: str) -> str:
    parts = ((plain, "image"), (ours, "ours"), (theirs, "ProtoPNet's"))
    figures = "".join(f"<figure>{html}<figcaption>{name}</figcaption></figure>" for html, name in parts)
    return f'<div class="side"><p>{title}</p><div class="trio">{figures}</div></div>'


def _facts(one: PrototypeEvidence) -> str:
    facts = {"class": one.class_name, "distance": f"{one.distance:.4g}", "weight": f"{one.weight:+.4g}"}
    facts["adds to the sum"] = f"{one.weight * one.similarity:+.4g}"
    if one.source is not None:
        facts["source"] = f"{one.source.image}, row {one.source.row}, column {one.source.column}"
    if one.duplicate_of is not None:
        facts["note"] = f"{one.duplicate_kind} to prototype {one.duplicate_of}"
    rows = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
    return f"<dl>{rows}</dl>"


def _settings(explanation: Explanation) -> str:
    height, width = explanation.original_size
    facts = {
        "image": f"{explanation.name}, {width} x {height} pixels, seen by the network at "
        f"{explanation.pixels.shape[2]} x {explanation.pixels.shape[1]}",
        "players": explanation.settings["players"],
        "baseline": explanation.baseline,
        "estimator": ", ".join(
            [
                explanation.method,
                *(f"{name}={value}" for name, value in explanation.settings.get("options", {}).items()),
                cost(explanation),
                f"seed {explanation.settings['seed']}",
                f"in {explanation.settings.get('autocast') or 'full precision'}",
            ]
        ),
        "network": f"{explanation.network['encoder'] or 'own encoder'}, "
        f"{explanation.network['prototypes']} prototypes, "
        f"{explanation.network['similarity']} similarity",
        "weights (SHA-256)": explanation.network["weights_sha256"],
    }
    rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(str(v))}</td></tr>" for k, v in facts.items())
    return f'<table class="plain">{rows}</table>'
