"""How results show themselves in a notebook."""

from __future__ import annotations

from html import escape

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.regions import RegionValues
from protopfaith.shapley import Attribution
from protopfaith.show.colors import data_uri, gray, overlay, png, rgb, scale_of
from protopfaith.show.trust import cost, relative_error
from protopfaith.show.wording import lead

SIDE = 132  # pixels of a picture
CELL = "padding:2px 8px 2px 0;text-align:left;vertical-align:top"


def explanation_html(explanation: Explanation) -> str:
    """The answer, the class map, and the prototypes with their maps: static, so that it survives being
    exported."""
    scale = scale_of([one.test for one in explanation.evidence])
    rows = []
    for one in explanation.evidence:
        style = "opacity:0.4" if one.duplicate_of is not None else ""
        source = ""
        if one.source_side is not None:
            source = _image(one.source_side.pixels, None, 1.0) + _image(
                one.source_side.pixels, one.source_side.regions, scale
            )
        score = f"Ψ<sub>k</sub> = {one.paper_score:+.3f}"
        facts = f"prototype {one.prototype}<br>{score}<br>distance {one.distance:.3g}"
        cells = (facts, _image(explanation.pixels, one.test, scale), source)
        rows.append(
            f'<tr style="{style}">' + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"
        )
    mine = explanation.class_map
    heads = "".join(f'<th style="{CELL}">{text}</th>' for text in ("", "on this image", "its source image"))
    return (
        f"<div><h3>{escape(explanation.title)}</h3><p>{lead(explanation)}</p>"
        f"{_image(explanation.pixels, None, 1.0)}{_image(explanation.pixels, mine, scale_of([mine]))}"
        f"<table><tr>{heads}</tr>{''.join(rows)}</table><p>{escape(_trust(explanation))}</p></div>"
    )


def _trust(explanation: Explanation) -> str:
    error = relative_error(explanation.class_map.standard_errors, explanation.precision)
    return (
        "Orange: more similar, or for the class; blue: less, or against. "
        f"{explanation.settings['players']}, baseline "
        f"{explanation.baseline}, {cost(explanation)} ({explanation.method}), relative error {error}."
    )


class ShownAttribution:
    """An attribution that shows itself in a notebook: one map per output, on a scale of its own.

    `sign=-1` where the outputs are distances, so that warm colors mean similarity.
    """

    def __init__(self, attribution: Attribution, *, sign: int = 1, names: list[str] | None = None):
        self.attribution, self.sign = attribution, sign
        self.names = names or [f"output {i}" for i in range(len(attribution.values))]

    def _repr_html_(self) -> str:
        from protopfaith.explanation.regions import region_values

        figures = []
        for output, name in enumerate(self.names):
            regions = region_values(self.attribution, output, self.sign)
            scale = scale_of([regions])
            heat = data_uri(png(overlay(regions.map().numpy(), scale)))
            figures.append(
                f'<figure style="display:inline-block;margin:4px"><img src="{heat}" width="{SIDE}" '
                f'style="image-rendering:pixelated;background:#ddd"><figcaption>{escape(name)}: '
                f"{regions.total:+.4g} in all, "
                f"±{scale:.3g} at most</figcaption></figure>"
            )
        a = self.attribution
        words = f"{a.players.description}, baseline {a.baseline}, {cost(a)} ({a.method})"
        error = relative_error(a.standard_errors, a.precision)
        return f"<div>{''.join(figures)}<p>{escape(words)}, relative error {error}.</p></div>"


def _image(pixels: object, regions: RegionValues | None, scale: float) -> str:
    if regions is None:
        picture = rgb(pixels)  # type: ignore[arg-type]
    else:
        heat = overlay(regions.map().numpy(), scale)
        base, alpha = gray(pixels)[..., None], heat[..., 3:]  # type: ignore[arg-type]
        picture = base * (1 - alpha) + heat[..., :3] * alpha
    style = "image-rendering:pixelated;display:inline;margin:2px"
    return f'<img src="{data_uri(png(picture))}" width="{SIDE}" style="{style}">'
