"""What the network says about one image and how that adds up, before any game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decomposition import (
    Decomposition,
    decompose,
    find_class,
    output_row,
    paper_scores,
)
from protopfaith.explanation.picture import Picture
from protopfaith.explanation.protopnet_map import protopnet_maps
from protopfaith.explanation.settings import Settings
from protopfaith.network import PrototypeNetwork, duplicate_groups, equality_tolerance
from protopfaith.shapley import make_baseline

Duplicates = dict[int, tuple[int | None, str]]
"""For each prototype one of higher rank that it repeats (or None), and whether "identical" or "near"."""


@dataclass(frozen=True, eq=False)
class Decision:
    """The network's view of one image."""

    picture: Picture
    distances: Tensor  # (P,), float64
    logits: Tensor  # (C,), float64, divided by the temperature
    empty_logits: Tensor  # (C,): of the baseline, that is of an image without any region
    temperature: float | None  # None: not calibrated
    target: int
    versus: int | None
    rival: int  # the class to compare with: the one asked for, or the most probable other one
    output: str  # what is explained, one of `settings.OUTPUTS`
    decomposition: Decomposition
    named: list[int]  # prototypes to show, ranked: the target's, then those of the class it is compared with
    paper: dict[int, float]  # the paper's score of each of them
    activations: Tensor  # (named, H, W): PrototypeNetwork's own maps
    duplicates: Duplicates

    def row(self, model: PrototypeNetwork, output: str | None = None) -> Tensor:
        """The weights (P,) with which similarities add up to an output, by default to what is explained."""
        row = output_row(model, output or self.output, self.target, self.rival)
        return row / (self.temperature or 1.0)

    def __repr__(self) -> str:
        return f"Decision({self.picture.name!r}, target={self.target}, versus={self.versus})"


@torch.no_grad()
def decide(
    model: PrototypeNetwork,
    picture: Picture,
    target: str | int | None = None,
    versus: str | int | None = None,
    *,
    settings: Settings | None = None,
    temperature: float | None = None,
) -> Decision:
    """Asks the network about one image.

    Args:
        model: in evaluation mode
        picture: the image, on the network's device
        target: the class to explain, by name or number; the predicted one by default
        versus: a class to compare it with
        settings: what to explain, against which baseline
        temperature: what logits are divided by before they become probabilities
    """
    settings = settings or Settings()
    target, versus = find_class(model, target), find_class(model, versus)
    maps = _distance_maps(model, picture)
    distances = maps.amin(dim=(-2, -1))
    logits = model.logits(distances[None])[0].double().cpu() / (temperature or 1.0)
    if not bool(torch.isfinite(logits).all()):
        raise ProtoPFaithError(f"The network's output on {picture.name} is not finite; check its weights.")
    if target is None:
        target = int(logits.argmax())
    rival = _rival(logits, target) if versus is None else versus
    output = choose_output(settings.output, versus)
    versus = rival if output == "versus" else versus
    paper = _ranked_scores(model, distances, [target] if versus is None else [target, versus])
    named = list(paper)
    return Decision(
        picture,
        distances.double().cpu(),
        logits,
        _empty_logits(model, picture, settings) / (temperature or 1.0),
        temperature,
        target,
        versus,
        rival,
        output,
        decomposition=decompose(model, distances, target, versus, temperature=temperature),
        named=named,
        paper=paper,
        activations=protopnet_maps(model, maps[named], picture.input.shape[-2:]).cpu(),
        duplicates=mark_duplicates(model, named, settings.duplicate_tolerance),
    )


def choose_output(output: str | None, versus: object) -> str:
    """What is explained: the margin, or a difference where another class is given to compare with.

    >>> choose_output(None, None), choose_output(None, "dog"), choose_output("logit", None)
    ('margin', 'versus', 'logit')
    """
    if versus is not None and output not in (None, "versus"):
        raise ProtoPFaithError(
            f"A comparison with another class explains the difference of both logits, not the output "
            f"{output!r}; leave out one of them."
        )
    return output or ("margin" if versus is None else "versus")


def _empty_logits(model: PrototypeNetwork, picture: Picture, settings: Settings) -> Tensor:
    """Of the image without any region: what every map is relative to."""
    empty, _ = make_baseline(settings.baseline, picture.input)
    return model(empty[None])[0].double().cpu()


def _rival(logits: Tensor, target: int) -> int:
    ranked = logits.argsort(descending=True).tolist()
    return ranked[1] if ranked[0] == target else ranked[0]


def _distance_maps(model: PrototypeNetwork, picture: Picture) -> Tensor:
    """(P, h, w); an error for a network that answers at random."""
    image = picture.input[None]
    maps = model.distance_maps(image)
    distances = maps.amin(dim=(-2, -1))
    if bool(((model.distances(image) - distances).abs() > 1e-3 * distances.abs().max()).any()):
        raise ProtoPFaithError(
            "The network answers differently when asked twice about one image; switch off whatever is random "
            "in its encoder before explaining it."
        )
    return maps[0]


def _ranked_scores(model: PrototypeNetwork, distances: Tensor, classes: Sequence[int]) -> dict[int, float]:
    """The paper's scores of the classes' prototypes: class after class, the largest score first."""
    ranked: dict[int, float] = {}
    for one in classes:
        scores = paper_scores(model, distances, one)
        members = torch.where(model.prototype_classes.cpu() == one)[0]
        order = scores.argsort(descending=True, stable=True)
        ranked |= dict(zip(members[order].tolist(), scores[order].tolist(), strict=True))
    return ranked


def mark_duplicates(
    model: PrototypeNetwork, ranked: Sequence[int], tolerance: float | None = None
) -> Duplicates:
    """Which of the prototypes `ranked` repeat one of higher rank."""
    classes, vectors = model.prototype_classes.cpu(), model.prototypes.detach().cpu()
    if tolerance is None:
        tolerance = equality_tolerance(vectors.shape[1], model.activation)
    marks: Duplicates = dict.fromkeys(ranked, (None, ""))
    # Only prototypes of one class can be equal: those of other classes need no comparison.
    members = torch.where(torch.isin(classes, classes[list(ranked)]))[0]
    for kind, limit in (("near", tolerance), ("identical", 0.0)):
        for places in duplicate_groups(vectors[members], classes[members], limit):
            group = set(members[list(places)].tolist())
            shown = [prototype for prototype in ranked if prototype in group]
            for prototype in shown[1:]:
                marks[prototype] = (shown[0], kind)
    return marks
