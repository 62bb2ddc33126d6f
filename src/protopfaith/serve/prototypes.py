"""The prototypes of a decision as a row of cards, and one of them in detail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.serve.case import Case
from protopfaith.serve.linked_pictures import LinkedPictures
from protopfaith.show.heat import scale_of
from protopfaith.show.pictures import DrawnPicture
from protopfaith.show.report import Legend, make_legend
from protopfaith.show.wording.findings import stands_for
from protopfaith.show.wording.numbers import percent

MOST = 12


@dataclass(frozen=True)
class PrototypeCard:
    """A prototype: what it is, where this image is like it, and where it comes from."""

    number: int
    name: str
    sentence: str
    here: DrawnPicture
    there: DrawnPicture | None
    origin: str
    duplicate: bool


def prototype_cards(case: Case, explanation: Explanation) -> dict[str, Any]:
    """What the template of the prototypes shows."""
    shown = explanation.evidence[:MOST]
    scale = scale_of([one.test for one in shown])
    pictures = LinkedPictures(place=f"/case/{case.id}/image/", files=case.images)
    cards = [_card(case, explanation, one, scale, pictures) for one in shown]
    legend: Legend = make_legend([one.test for one in shown], "less similar", "more similar")
    return {
        "cards": cards,
        "legend": legend,
        "shared": pictures,
        "left_out": len(explanation.evidence) - MOST,
        "findings": bool(explanation.findings),
    }


def _card(
    case: Case, explanation: Explanation, one: PrototypeEvidence, scale: float, pictures: LinkedPictures
) -> PrototypeCard:
    name = f"Prototype {one.prototype}"
    here = pictures.ours(explanation.pixels, one.test, scale, f"{name}: what makes this image like it")
    patch = case.network.patch(one.prototype)
    exact = one.source is None or one.source.exact
    there = None
    if patch is not None:
        part = "that it is" if exact else "nearest to it"
        there = pictures.boxed(patch.pixels, f"{name}: the part of a training image {part}", patch.box)
    return PrototypeCard(
        one.prototype,
        name,
        _sentence(explanation, one),
        here,
        there,
        "its source" if exact else "nearest to it",
        one.duplicate_of is not None,
    )


def _sentence(explanation: Explanation, one: PrototypeEvidence) -> str:
    share = _share(explanation, one)
    if explanation.findings:
        stands = f"Stands for {stands_for(one.class_name, one.weight)}"
        return (
            f"{stands}; at a distance of {one.distance:.3g}."
            if share is None
            else f"{stands}: evidence {share:+.3g}."
        )
    if not one.class_name:
        return f"{_turn(explanation, one)} at a distance of {one.distance:.3g}.".strip().capitalize()
    if share is None:
        return f"Of {one.class_name}; at a distance of {one.distance:.3g}."
    side = "closer to it" if share > 0 else "farther from it"
    compared = f"The image is {side} than training images are on average: evidence {share:+.3g}."
    return f"Of {one.class_name}. {compared}"


def _turn(explanation: Explanation, one: PrototypeEvidence) -> str:
    """The answer of a node of a tree; nothing where there is no tree."""
    for turn in explanation.route.turns if explanation.route is not None else ():
        if turn.prototype == one.prototype:
            return f"{'yes' if turn.right else 'no'} with {percent(turn.probability)},"
    return ""


def _share(explanation: Explanation, one: PrototypeEvidence) -> float | None:
    for found in (explanation.closeness, explanation.rival_closeness):
        if found is not None and one.prototype in found.prototypes.tolist():
            return float(found.shares[found.prototypes.tolist().index(one.prototype)])
    return None
