"""The page on all prototypes of a network."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from protopfaith.explanation.catalog.nearest import Patch, patch_box
from protopfaith.show.colors import scale_of
from protopfaith.show.page import fill, render_page
from protopfaith.show.percent import percent
from protopfaith.show.pictures import Pictures, base_image, box_html
from protopfaith.show.report import SIMILAR, toolbar

if TYPE_CHECKING:
    from protopfaith.explanation.catalog.catalog import Catalog, ClassPortrait, PrototypePortrait

NOTE = (
    "“On the object” is the share of the evidence for a prototype, on its source image, that lies on the "
    "object, where a "
    "mask or a box is known; the object's share of the image is what a map without any knowledge would "
    "have. A prototype "
    "is used by an image if it contributes most to the class predicted for it; its own source image does "
    "not count."
)


def render_catalog(catalog: Catalog) -> str:
    """The page as text."""
    pictures = Pictures()
    scale = scale_of([one.source_side.regions for one in catalog.prototypes])
    sections = []
    for label, portrait in enumerate(catalog.classes):
        members = [one for one in catalog.prototypes if one.class_index == label]
        cards = "".join(_card(catalog, one, scale, pictures) for one in members)
        sections.append(
            f"<section><h2>{escape(portrait.name)}</h2><div class='cards'>{cards}</div></section>"
        )
    body = fill(
        "catalog.html",
        lead=_lead(catalog),
        toolbar=toolbar(scale),
        classes_note=NOTE,
        classes=_classes(catalog),
        prototypes="".join(sections),
    )
    return render_page("The prototypes of this network", body, pictures.data())


def _lead(catalog: Catalog) -> str:
    total, doubles, unused = len(catalog.prototypes), len(catalog.duplicates), len(catalog.unused)
    text = f"{total} prototypes of {len(catalog.classes)} classes: {_count(doubles)} another one, {unused} "
    text += "is" if unused == 1 else "are"
    text += " used by no image but the source. "
    background = catalog.on_background
    if background:
        return text + f"{len(background)} classes rest mostly on background: {escape(', '.join(background))}."
    known = any(math.isfinite(one.object_share) for one in catalog.classes)
    return text + ("No class rests mostly on background." if known else "Where the objects are is not known.")


def _count(doubles: int) -> str:
    return "none repeats" if not doubles else f"{doubles} repeats" if doubles == 1 else f"{doubles} repeat"


def _classes(catalog: Catalog) -> str:
    heads = ("class", "prototypes that differ", "unused", "on the object", "object's share of the image", "")
    rows = "".join(_class_row(one) for one in catalog.classes)
    titles = "".join(f"<th>{head}</th>" for head in heads)
    return f'<table class="plain"><tr>{titles}</tr>{rows}</table>'


def _class_row(one: ClassPortrait) -> str:
    flag = '<span class="flag">rests on background</span>' if one.rests_on_background else ""
    shares = [percent(s) if math.isfinite(s) else "not known" for s in (one.object_share, one.object_area)]
    cells = (escape(one.name), f"{one.distinct} of {one.prototypes}", str(one.unused), *shares, flag)
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _card(catalog: Catalog, one: PrototypePortrait, scale: float, pictures: Pictures) -> str:
    side = one.source_side
    name = f"Prototype {one.prototype}"
    flags = ""
    if one.duplicate_of is not None:
        flags += f'<span class="flag">{one.duplicate_kind} to prototype {one.duplicate_of}</span>'
    if one.uses == 0:
        flags += '<span class="flag">no image uses it</span>'
    share = f", {percent(one.object_share)} on the object" if math.isfinite(one.object_share) else ""
    parts = (
        (pictures.plain(side.pixels, f"The source image {side.path}"), "source"),
        (pictures.ours(side.pixels, side.regions, scale, f"{name}, our map", SIMILAR), "what it sees"),
        *((_patch(catalog, patch), f"{patch.distance:.2g}") for patch in _others(one)),
    )
    figures = "".join(
        f"<figure>{html}<figcaption>{escape(text)}</figcaption></figure>" for html, text in parts
    )
    kind = " duplicate" if one.duplicate_of is not None else ""
    return (
        f'<article class="card{kind}"><h3>{name}</h3>{flags}<div class="trio">{figures}</div>'
        f"<p>{escape(side.path)}; {_used(one.uses)}{share}. Pictures with a number: the nearest other "
        "training images, "
        "and their distances.</p></article>"
    )


def _used(uses: int) -> str:
    return "used by one image" if uses == 1 else f"used by {uses} images"


def _others(one: PrototypePortrait) -> list[Patch]:
    """The nearest images but the source itself, enough to fill the rows of three."""
    return [patch for patch in one.nearest if patch.path != one.source_side.path][:4]


def _patch(catalog: Catalog, patch: Patch) -> str:
    pixels = catalog.images.image(patch.image)
    size = pixels.shape[-2:]
    box = box_html(patch_box(patch, catalog.latent_size, size), size)
    label = catalog.images.classes[patch.label]
    return f'<div class="picture" title="{escape(label)}">{base_image(pixels, patch.path)}{box}</div>'
