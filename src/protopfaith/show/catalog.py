"""The page on all prototypes of a network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from protopfaith.explanation.catalog.nearest import Patch, patch_box
from protopfaith.show.heat import scale_of
from protopfaith.show.pages import render_page
from protopfaith.show.pictures import DrawnPicture, Pictures
from protopfaith.show.report import SIMILAR, Captioned, make_legend
from protopfaith.show.wording.findings import stands_for
from protopfaith.show.wording.glossary import WORDS
from protopfaith.show.wording.numbers import percent

if TYPE_CHECKING:
    from protopfaith.explanation.catalog.catalog import Catalog, ClassPortrait, PrototypePortrait

NOTE = (
    "“On the object” is the share of the evidence for a prototype, on its source image, that lies on the "
    "object, where a mask or a box is known; the object's share of the image is what a map without any "
    "knowledge would have. A prototype is used by an image if it contributes most to the class predicted "
    "for it; its own source image does not count."
)
MOST_NEAREST = 4
ALL = "all classes"  # of prototypes that belong to none
GLOSSARY = ("prototype", "source", "distance", "player", "baseline", "shapley", "decided")


@dataclass(frozen=True)
class PortraitCard:
    """A prototype of the page: where it comes from, and the images that are nearest to it."""

    name: str
    flags: tuple[str, ...]
    pictures: tuple[Captioned, ...]
    nearest: tuple[Captioned, ...]
    text: str
    duplicate: bool


@dataclass(frozen=True)
class Section:
    """A class of the page."""

    name: str
    distinct: int
    prototypes: int
    unused: int
    on_object: str
    area: str
    rests_on_background: bool
    cards: tuple[PortraitCard, ...]


def render_catalog(catalog: Catalog) -> str:
    """The page as text."""
    pictures = Pictures()
    maps = [one.source_side.regions for one in catalog.prototypes]
    scale = scale_of(maps)
    sections = [_section(catalog, portrait, scale, pictures) for portrait in catalog.classes]
    return render_page(
        "catalog.html",
        pictures.data(),
        lead=f"{_lead(catalog)} {_resembling(catalog)}".rstrip(),
        note=_note(catalog),
        kinds=_kinds(catalog),
        framed=not _is_of_findings(catalog),
        legend=make_legend(maps, "less similar", "more similar"),
        classes=sections,
        known=any(math.isfinite(one.object_share) for one in catalog.classes),
        words={key: WORDS[key] for key in GLOSSARY},
        shared=pictures,
    )


def _lead(catalog: Catalog) -> str:
    total, doubles = len(catalog.prototypes), len(catalog.duplicates)
    text = f"{total} prototypes{_of_classes(catalog)}: {_count(doubles)} another one, {_unused(catalog)}."
    one, many = _kinds(catalog)
    background = catalog.on_background
    if background == [""]:
        return f"{text} Together they rest mostly on background."
    if background:
        rest = f"1 {one} rests" if len(background) == 1 else f"{len(background)} {many} rest"
        return f"{text} {rest} mostly on background: {', '.join(background)}."
    known = any(math.isfinite(portrait.object_share) for portrait in catalog.classes)
    rests = f"No {one} rests mostly on background." if known else "Where the objects are is not known."
    return f"{text} {rests}"


def _resembling(catalog: Catalog) -> str:
    """That the images beside some prototypes are not what they are; nothing where all are."""
    alike = sum(not one.source.exact for one in catalog.prototypes)
    if not alike:
        return ""
    return (
        f"{alike} of the {len(catalog.prototypes)} prototypes are no part of any training image found here: "
        "beside these is the nearest one, which only resembles them."
    )


def _of_classes(catalog: Catalog) -> str:
    named = sum(bool(one.name) for one in catalog.classes)
    return f" of {named} {_kinds(catalog)[1]}" if named else ""


def _is_of_findings(catalog: Catalog) -> bool:
    return catalog.images.outcome == "several"


def _kinds(catalog: Catalog) -> tuple[str, str]:
    """What prototypes belong to, one and many of it."""
    return ("finding", "findings") if _is_of_findings(catalog) else ("class", "classes")


def _note(catalog: Catalog) -> str:
    return (
        NOTE.replace("the class predicted for it", "what is said of its finding")
        if _is_of_findings(catalog)
        else NOTE
    )


def _unused(catalog: Catalog) -> str:
    unused = len(catalog.unused)
    if not unused:
        return "each is used by some image besides its source"
    return f"{unused} {'is' if unused == 1 else 'are'} used by no image but the source"


def _count(doubles: int) -> str:
    return "none repeats" if not doubles else f"{doubles} repeats" if doubles == 1 else f"{doubles} repeat"


def _section(catalog: Catalog, portrait: ClassPortrait, scale: float, pictures: Pictures) -> Section:
    members = [one for one in catalog.prototypes if one.class_name == portrait.name]
    return Section(
        portrait.name or ALL,
        portrait.distinct,
        portrait.prototypes,
        portrait.unused,
        _share(portrait.object_share),
        _share(portrait.object_area),
        portrait.rests_on_background,
        tuple(_card(catalog, one, scale, pictures) for one in members),
    )


def _share(share: float) -> str:
    return percent(share) if math.isfinite(share) else "not known"


def _card(catalog: Catalog, one: PrototypePortrait, scale: float, pictures: Pictures) -> PortraitCard:
    side = one.source_side
    name = f"Prototype {one.prototype}"
    if _is_of_findings(catalog):
        name += f" ({stands_for(one.class_name, one.weight)})"
    flags = [] if one.source.exact else ["only resembles this image"]
    if one.duplicate_of is not None:
        flags.append(f"{one.duplicate_kind} to prototype {one.duplicate_of}")
    if one.uses == 0:
        flags.append("no image uses it")
    share = f", {percent(one.object_share)} on the object" if math.isfinite(one.object_share) else ""
    source = "source image" if one.source.exact else "nearest training image"
    shown = (
        (pictures.plain(side.pixels, f"{name}: its {source} {side.path}"), source),
        (
            pictures.ours(side.pixels, side.regions, scale, f"{name}: what it sees there", SIMILAR),
            "what it sees",
        ),
    )
    nearest = tuple((_patch(catalog, patch, pictures), _how_near(patch)) for patch in _others(one))
    origin = "From" if one.source.exact else "Nearest to it is a part of"
    text = f"{origin} {side.path}; {_used(one.uses)}{share}. {catalog.remarks.get(one.prototype, '')}".strip()
    return PortraitCard(name, tuple(flags), shown, nearest, text, one.duplicate_of is not None)


def _used(uses: int) -> str:
    return "used by one image" if uses == 1 else f"used by {uses} images"


def _others(one: PrototypePortrait) -> list[Patch]:
    """The nearest images but the source itself, enough to fill the rows of two."""
    return [patch for patch in one.nearest if patch.path != one.source_side.path][:MOST_NEAREST]


def _how_near(patch: Patch) -> str:
    near = "below 0.001" if patch.distance < 0.001 else f"{patch.distance:.2g}"
    return f"distance {near}"


def _patch(catalog: Catalog, patch: Patch, pictures: Pictures) -> DrawnPicture:
    pixels = catalog.images.image(patch.image)
    names = [catalog.images.classes[label] for label in catalog.images.shows(patch.image)]
    title = f"{', '.join(names) or 'no finding'}: {patch.path}"
    alt = f"One of the nearest training images, {title}"
    if _is_of_findings(catalog):  # such a prototype looks at all of an image
        return pictures.plain(pixels, alt)
    return pictures.boxed(pixels, alt, patch_box(patch, catalog.latent_size, pixels.shape[-2:]), title)
