"""The network's own view of one image, before any game: distances, logits, scores, duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decomposition import Decomposition, decompose, paper_scores
from protopfaith.explanation.picture import Picture
from protopfaith.explanation.protopnet_map import protopnet_maps
from protopfaith.network import ProtoPNet, duplicate_groups, equality_tolerance


@dataclass(frozen=True, eq=False)
class Case:
    """The network's view of one image, before any game."""

    picture: Picture
    distances: Tensor  # (P,)
    activations: Tensor  # (P, H, W)
    logits: Tensor  # (C,)
    target: int
    versus: int | None
    decomposition: Decomposition
    named: list[int]  # prototypes to show, ranked: the target's, then those of the class it is compared with
    paper: dict[int, float]


@torch.no_grad()
def look(model: ProtoPNet, picture: Picture, x: Tensor, target: int | None, versus: int | None) -> Case:
    maps = model.distance_maps(x[None])
    distances = maps.amin(dim=(-2, -1))
    if bool(((model.distances(x[None]) - distances).abs() > 1e-3 * distances.abs().max()).any()):
        raise ProtoPFaithError(
            "The network answers differently when asked twice about one image; switch off whatever is "
            "random in "
            "its encoder before explaining it."
        )
    logits = model.logits(distances)[0].double().cpu()
    if not bool(torch.isfinite(logits).all()):
        raise ProtoPFaithError(f"The network's output on {picture.name} is not finite; check its weights.")
    if target is None:
        target = int(logits.argmax())
    decomposition = decompose(model, distances[0], target, versus)
    owners = model.prototype_classes.cpu()
    paper: dict[int, float] = {}
    named: list[int] = []
    for one in [target] if versus is None else [target, versus]:
        scores = paper_scores(model, distances[0], one)
        members = torch.where(owners == one)[0]
        ranked = members[scores.argsort(descending=True, stable=True)].tolist()
        paper |= dict(zip(members.tolist(), scores.tolist(), strict=True))
        named += ranked
    activations = protopnet_maps(model, maps[0][named], x.shape[-2:]).cpu()
    return Case(
        picture, distances[0].double().cpu(), activations, logits, target, versus, decomposition, named, paper
    )


def mark_duplicates(
    model: ProtoPNet, ranked: Sequence[int], tolerance: float | None = None
) -> dict[int, tuple[int | None, str]]:
    """For each prototype one of higher rank that it repeats (or None), and whether identically or nearly."""
    classes, vectors = model.prototype_classes.cpu(), model.prototypes.detach().cpu()
    tolerance = equality_tolerance(vectors.shape[1]) if tolerance is None else tolerance
    marks: dict[int, tuple[int | None, str]] = dict.fromkeys(ranked, (None, ""))
    # Only prototypes of one class can be equal: those of other classes need no comparison.
    members = torch.where(torch.isin(classes, classes[list(ranked)]))[0]
    for kind, limit in (("near", tolerance), ("identical", 0.0)):
        for places in duplicate_groups(vectors[members], classes[members], limit):
            group = set(members[list(places)].tolist())
            shown = [prototype for prototype in ranked if prototype in group]
            for prototype in shown[1:]:
                marks[prototype] = (shown[0], kind)
    return marks


def rival(case: Case) -> int:
    """The class to compare with: the one asked for, or the most probable other one."""
    if case.versus is not None:
        return case.versus
    ranked = case.logits.argsort(descending=True).tolist()
    return ranked[1] if ranked[0] == case.target else ranked[0]
