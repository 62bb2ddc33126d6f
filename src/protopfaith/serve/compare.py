"""Explainers side by side, on this very image: their maps of one prototype, and the AOPC of each."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import (
    EXPLAINERS,
    Explained,
    Options,
    default_explainers,
    from_attribution,
    selected_distances,
)
from protopfaith.evaluation.metrics.removal import aopc, removal_curves, removal_ranks
from protopfaith.explanation.regions import RegionValues
from protopfaith.explanation.settings import coarse_players
from protopfaith.serve.case import Case, Shown
from protopfaith.serve.linked_pictures import LinkedPictures
from protopfaith.serve.pages import render, with_own_ids
from protopfaith.shapley import Players, make_baseline
from protopfaith.show.heat import scale_of
from protopfaith.show.pictures import DrawnPicture

FIRST_CHOICE = ("ours", "protopnet", "dasp", "random")
LONG = ("dasp", "moment_path")  # their cost grows with the regions, so that they get large ones
MOST_LONG = 64
STEPS = 20
UP_TO = 0.2  # of the pixels, as in the tables of faithfulness
BUDGET = 512


@dataclass(frozen=True)
class Column:
    """One explainer's map, its score, and what there is to say."""

    name: str
    meaning: str
    picture: DrawnPicture | None
    score: str
    note: str
    best: bool = False


def choices() -> list[tuple[str, str]]:
    """All explainers that can be chosen, with what they are."""
    return [(name, meaning_of(name)) for name in default_explainers()]


def meaning_of(name: str) -> str:
    """The first sentence on an explainer."""
    return " ".join((EXPLAINERS[name].__doc__ or "").split()).partition(". ")[0].rstrip(".") + "."


def chosen(value: Any) -> list[str]:
    """Names of explainers from a browser's message."""
    known = default_explainers()
    if not isinstance(value, list) or not value or any(one not in known for one in value):
        raise ProtoPFaithError("Choose at least one of the explainers that are listed.")
    return list(dict.fromkeys(value))


def compare_pieces(case: Case, prototype: int, names: Sequence[str]) -> Generator[None, None, str]:
    """Makes the maps, explainer after explainer; returns the HTML.

    Args:
        case: the image and its map.
        prototype: whose distance they explain.
        names: of explainers.
    """
    shown = case.shown  # all maps are of these regions, whatever is played meanwhile
    if case.decision is None or shown is None or shown.result is None:
        raise ProtoPFaithError("Wait for the first map before comparing it.")
    if prototype not in case.decision.named:
        raise ProtoPFaithError("Choose one of the prototypes that are shown.")
    columns, scores = [], {}
    pictures = LinkedPictures(place=f"/case/{case.id}/image/", files=case.images)
    for name in names:
        start = time.perf_counter()
        try:
            found, note = _explained(case, shown, prototype, name)
        except ProtoPFaithError as error:
            columns.append(Column(name, meaning_of(name), None, "", str(error)))
            continue
        spent = time.perf_counter() - start
        scores[name] = _aopc(case, shown, prototype, found)
        note = f"{note} {spent:.1f} seconds.".strip()
        picture = _picture(case, found, pictures, name)
        columns.append(Column(name, meaning_of(name), picture, f"{scores[name]:.3g}", note))
        yield
    best = min(scores, key=lambda one: scores[one], default="")
    columns = [
        Column(one.name, one.meaning, one.picture, one.score, one.note, one.name == best) for one in columns
    ]
    html = render("blocks/compare.html", columns=columns, prototype=prototype, shared=pictures, up_to=UP_TO)
    return with_own_ids(html, f"{case.mark}x-")


def _explained(case: Case, shown: Shown, prototype: int, name: str) -> tuple[Explained, str]:
    """An explainer's map; ours is the one that is on the page already."""
    assert shown.result is not None
    if name == "ours":
        return from_attribution(shown.result.of_outputs([prototype])), "The map of this page, as it is now."
    image, players, note = case.picture.input, shown.resumable.players.to("cpu"), ""
    if name in LONG and len(players) > MOST_LONG:
        players = coarse_players(image)
        note = f"On {len(players)} larger regions, since it takes long."
    options = Options(
        players=players.to(image.device), baseline=case.settings.baseline, budget=BUDGET, sizes=4, nodes=16
    )
    return EXPLAINERS[name](case.network.model, image, [prototype], options), note


def _aopc(case: Case, shown: Shown, prototype: int, found: Explained) -> float:
    """How fast the distance rises on this image, when what the map calls important is removed."""
    image, model = case.picture.input, case.network.model
    ranks = removal_ranks(found.maps[0], shown.resumable.players.to("cpu"), torch.Generator().manual_seed(0))
    baseline, _ = make_baseline(case.settings.baseline, image)
    curves = removal_curves(
        selected_distances(model, [prototype]),
        image[None],
        ranks[None],
        torch.tensor([0]),
        baseline[None],
        steps=STEPS,
    )
    return float(aopc(curves, UP_TO)[0])


def _picture(case: Case, found: Explained, pictures: LinkedPictures, name: str) -> DrawnPicture:
    pixels, alt = case.picture.pixels, f"The map of {name}"
    if found.regions is not None:
        regions = _regions(found, found.regions)
        return pictures.ours(pixels, regions, scale_of([regions]), alt)
    activation = found.maps[0].float()
    limits = (float(activation.min()), float(activation.max()))
    return pictures.smooth(pixels, activation, limits, alt)


def _regions(found: Explained, players: Players) -> RegionValues:
    values = -found.values(players)[0]
    errors = torch.full_like(values, torch.nan)
    return RegionValues(values, errors, float(values.sum()), 0.0, players, sign=-1)
