"""One prototype in detail: its source and the map there, the nearest training patches, its weights."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.catalog.nearest import Survey, patch_box, survey
from protopfaith.network import adds_up, class_of, weights_of
from protopfaith.serve.case import Case
from protopfaith.serve.linked_pictures import LinkedPictures
from protopfaith.serve.networks import Network
from protopfaith.serve.pages import render, with_own_ids
from protopfaith.show.bars import Bars, Term, make_bar
from protopfaith.show.heat import scale_of
from protopfaith.show.report import make_legend
from protopfaith.show.wording.findings import stands_for

NEAREST = 6
MOST_CLASSES = 12


def detail_pieces(case: Case, prototype: int) -> Generator[None, None, str]:
    """Makes the panel of a prototype; returns its HTML."""
    network, decision = case.network, case.decision
    assert decision is not None
    if not 0 <= prototype < len(network.model.prototypes):
        raise ProtoPFaithError("There is no such prototype.")
    pictures = LinkedPictures(place=f"/case/{case.id}/image/", files=case.images)
    view: dict[str, Any] = {"name": f"Prototype {prototype}", "shared": pictures, "source": None}
    owner = class_of(network.model, prototype)
    view["lead"] = _lead(network, prototype, owner)
    if case.has_sources():
        side = network.explainer.sources.explain([prototype], case.settings)[prototype]
        yield
        scale = scale_of([side.regions])
        name = view["name"]
        source = "its source image" if _is_exact(network, prototype) else "the training image nearest to it"
        part = pictures.boxed(side.pixels, f"{name}: {source}", side.box)
        seen = pictures.ours(side.pixels, side.regions, scale, f"{name}: what it sees there")
        view["source"] = [(part, f"{source}, and the part"), (seen, "what it sees there")]
        view["legend"] = make_legend([side.regions], "less similar", "more similar")
    view["nearest"] = _nearest(network, prototype, pictures)
    view["framed"] = network.outcome == "one"
    view["weights"] = weight_bars(network, prototype) if adds_up(network.model) else None
    return with_own_ids(render("blocks/portrait.html", **view), f"{case.mark}t-")


def _lead(network: Network, prototype: int, owner: str) -> str:
    """What it is."""
    if network.outcome == "several":
        label = int(network.model.prototype_classes[prototype])
        weight = float(weights_of(network.model)[label, prototype])
        return f"What it sees of a training image; it stands for {stands_for(owner, weight)}."
    part = f"part of a training image{' of ' + owner if owner else ''}"
    if _is_exact(network, prototype):
        return f"A {part}."
    return f"It is no part of any training image found here; beside it is the nearest {part}."


def _is_exact(network: Network, prototype: int) -> bool:
    """Whether a prototype is a part of its source image, and does not only resemble it."""
    source = network.model.sources[prototype]
    return source is None or source.exact


def _nearest(network: Network, prototype: int, pictures: LinkedPictures) -> list[tuple[Any, str]]:
    """The training images that are nearest to a prototype, with a frame around the place."""
    found = nearest_of(network)
    if found is None or network.data is None:
        return []
    train, size = network.data.train, network.explainer.size
    shown = []
    for patch in found.nearest[prototype]:
        box = patch_box(patch, found.latent_size, size)
        name = ", ".join(network.class_names[label] for label in train.shows(patch.image)) or "no finding"
        alt = f"A training image of {name} at a distance of {patch.distance:.3g}"
        pixels = train.image(patch.image)
        whole = network.outcome == "several"  # such a prototype looks at all of an image
        picture = pictures.plain(pixels, alt) if whole else pictures.boxed(pixels, alt, box)
        shown.append((picture, f"{name}, distance {patch.distance:.3g}"))
    return shown


def nearest_of(network: Network) -> Survey | None:
    """The survey of all training images, made once; None where they are gone."""
    preprocessing = network.explainer.preprocessing
    if network.survey is None and network.data is not None and preprocessing is not None:
        model = network.model
        network.survey = survey(model, network.data.train, preprocessing, nearest=NEAREST)
    return network.survey


def weight_bars(network: Network, prototype: int) -> Bars:
    """How much a prototype counts for and against every class, or the classes that it counts most for."""
    model = network.model
    weights = weights_of(model).cpu()[:, prototype].tolist()
    several = network.outcome == "several"
    known = [c for c in range(len(weights)) if weights[c] or not several]  # a finding reads its own alone
    ranked = sorted(known, key=lambda c: -abs(weights[c]))[:MOST_CLASSES]
    span = max(abs(weight) for weight in weights) or 1.0
    low = -1.02 if min(weights) < 0 else -0.02
    rows = tuple(
        make_bar(Term(network.class_names[c], weights[c]), span, f"{weights[c]:+.3g}", low=low, high=1.02)
        for c in ranked
    )
    more = len(known) - len(rows)
    left = f"; {more} more classes have smaller ones" if more else ""
    return Bars("Its weight for its finding" if several else f"Its weight for every class{left}", rows)
