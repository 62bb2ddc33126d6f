"""What the network says about one image and how that adds up, before any game."""

from __future__ import annotations

import math
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
    output_weights,
    paper_scores,
)
from protopfaith.explanation.picture import Picture
from protopfaith.explanation.protopnet_map import own_maps
from protopfaith.explanation.settings import Settings
from protopfaith.network import (
    Outcome,
    PrototypeNetwork,
    Route,
    adds_up,
    duplicate_groups,
    equality_tolerance,
    outcome_of,
    probabilities,
    route_of,
)
from protopfaith.shapley import make_baseline
from protopfaith.training.calibration import UNCALIBRATED, Calibrator, as_calibrator
from protopfaith.training.typical import traits

Duplicates = dict[int, tuple[int | None, str]]
"""For each prototype one of higher rank that it repeats (or None), and whether "identical" or "near"."""


@dataclass(frozen=True, eq=False)
class Decision:
    """The network's view of one image.

    Args:
        picture: the image
        distances: (P,), float64
        traits: (F,), float64: of all distances, for the predicted class
        logits: (C,), float64, calibrated
        empty_logits: (C,): of the baseline, that is of an image without any region
        temperature: of the target; None: not calibrated
        target: the class that is explained
        versus: the class that it is compared with, if one was asked for
        rival: the class to compare with: the one asked for, or the most probable other one
        output: what is explained, one of `protopfaith.specs.OUTPUTS`
        decomposition: None where outputs are no sums
        named: prototypes to show, ranked: the target's, then those of the class it is compared with
        paper: the paper's score of each of them; NaN where outputs are no sums
        activations: (named, H, W): the network's own maps
        duplicates: which prototypes are the same
        route: through a tree, from its root
        outcome: whether logits are those of one class of many, or of several findings
        calibrator: what calibrated the logits
    """

    picture: Picture
    distances: Tensor
    traits: Tensor
    logits: Tensor
    empty_logits: Tensor
    temperature: float | None
    target: int
    versus: int | None
    rival: int
    output: str
    decomposition: Decomposition | None
    named: list[int]
    paper: dict[int, float]
    activations: Tensor
    duplicates: Duplicates
    route: Route | None = None
    outcome: Outcome = "one"
    calibrator: Calibrator = UNCALIBRATED

    @property
    def probabilities(self) -> Tensor:
        """Of classes, which add up to one, or of findings: (C,)."""
        return probabilities(self.logits, self.outcome)

    @property
    def adds_up(self) -> bool:
        """Whether outputs are weighted sums of similarities."""
        return self.decomposition is not None

    def row(self, model: PrototypeNetwork, output: str | None = None) -> Tensor:
        """The weights (P,) with which similarities add up to an output, by default to what is explained."""
        output = output or self.output
        finding = finding_number(output)
        if finding is not None:
            return self.finding_row(model, finding)
        return output_row(model, output, self.target, self.rival) / (self.temperature or 1.0)

    def finding_row(self, model: PrototypeNetwork, number: int) -> Tensor:
        """The weights (P,) with which similarities add up to the score of a finding."""
        return output_row(model, "logit", number, number) / self.calibrator.temperature(number)

    def class_weights(self, output: str) -> Tensor:
        """The weights (C,) with which the network's logits add up to an output."""
        weights = output_weights(len(self.logits), output, self.target, self.rival)
        return weights / (self.temperature or 1.0)

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
    temperature: float | Calibrator | None = None,
) -> Decision:
    """Asks the network about one image.

    Args:
        model: in evaluation mode
        picture: the image, on the network's device
        target: the class to explain, by name or number; the predicted one by default
        versus: a class to compare it with
        settings: what to explain, against which baseline
        temperature: what logits are divided by before they become probabilities, or what else is done to them
    """
    settings, calibrator = settings or Settings(), as_calibrator(temperature)
    target, versus = find_class(model, target), find_class(model, versus)
    maps = _distance_maps(model, picture)
    distances = maps.amin(dim=(-2, -1))
    logits = calibrator(model.logits(distances[None])[0].double().cpu())
    if not bool(torch.isfinite(logits).all()):
        raise ProtoPFaithError(
            f"The network's output on {picture.name} is not finite; check the image's values and the "
            "network's weights."
        )
    if target is None:
        target = int(logits.argmax())
    output = choose_output(model, settings, versus)
    rival = _rival(model, logits, target) if versus is None else versus
    versus = rival if output == "versus" else versus
    route = route_of(model, distances)
    paper = _ranked_scores(model, distances, [target] if versus is None else [target, versus], route)
    named = list(paper)
    summed = adds_up(model)
    empty, _ = make_baseline(settings.baseline, picture.input)  # what every map is relative to
    return Decision(
        picture,
        distances.double().cpu(),
        traits(model, picture.input[None], maps[None], logits.argmax()[None])[0],
        logits,
        calibrator(model(empty[None])[0].double().cpu()),
        None if temperature is None else calibrator.temperature(target),
        target,
        versus,
        rival,
        output,
        decomposition=decompose(model, distances, target, versus, temperature=calibrator) if summed else None,
        named=named,
        paper=paper,
        activations=own_maps(model, picture.input, maps, named).cpu(),
        duplicates=mark_duplicates(model, named, settings.duplicate_tolerance),
        route=route,
        outcome=outcome_of(model),
        calibrator=calibrator,
    )


def choose_output(model: PrototypeNetwork, settings: Settings, versus: object) -> str:
    """What is explained: the margin, or a difference where another class is given to compare with. Where
    outputs are no sums it is the log probability, which has a game of its own.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 1, 8)
    >>> choose_output(model, Settings(), None), choose_output(model, Settings(), "dog")
    ('margin', 'versus')
    >>> choose_output(model, Settings(output="logit"), None)
    'logit'
    """
    output = settings.output
    if outcome_of(model) == "several":
        if versus is not None or output not in (None, "logit"):
            raise ProtoPFaithError(
                "Findings are decided one by one, each by its own score, so there is no other class to "
                "compare with and no margin; leave out versus, and explain the logit."
            )
        return "logit"
    if versus is not None and output not in (None, "versus"):
        raise ProtoPFaithError(
            f"A comparison with another class explains the difference of both logits, not the output "
            f"{output!r}; leave out one of them."
        )
    if adds_up(model):
        return output or ("margin" if versus is None else "versus")
    _check_without_sums(model, settings)
    return output or ("log_probability" if versus is None else "versus")


def _check_without_sums(model: PrototypeNetwork, settings: Settings) -> None:
    """Raises if what is asked for needs outputs that are sums."""
    name = type(model).__name__
    if settings.output in ("margin", "logit"):
        raise ProtoPFaithError(
            f"A {name} gives log probabilities and no logits that are sums over prototypes, so it has no "
            f"{settings.output}; explain log_probability, or versus another class."
        )
    if not settings.traits.evaluates:
        raise ProtoPFaithError(
            f"The estimator {settings.method!r} propagates moments and has no rule for the output of a "
            f"{name}; take one that samples, such as owen."
        )


FINDING = "finding "


def finding_output(number: int) -> str:
    """The name of a finding's score among the outputs of a game.

    >>> finding_number(finding_output(3)), finding_number("logit")
    (3, None)
    """
    return f"{FINDING}{number}"


def finding_number(output: str) -> int | None:
    """The finding whose score an output is; None for any other output."""
    return int(output.removeprefix(FINDING)) if output.startswith(FINDING) else None


def _rival(model: PrototypeNetwork, logits: Tensor, target: int) -> int:
    """The most probable other class; findings have none and stand for themselves."""
    if outcome_of(model) == "several":
        return target
    ranked = logits.argsort(descending=True).tolist()
    return ranked[1] if ranked[0] == target else ranked[0]


def _distance_maps(model: PrototypeNetwork, picture: Picture) -> Tensor:
    """(P, h, w); an error for a network that answers at random."""
    image = picture.input[None]
    maps = model.distance_maps(image)
    distances = maps.amin(dim=(-2, -1))
    once, again = model.distances(image), model.distances(image)
    allowed = 1e-3 * distances.abs().max()
    if bool(((once - again).abs() > allowed).any()):
        raise ProtoPFaithError(
            "The network answers differently when asked twice about one image; switch off whatever is random "
            "in its encoder before explaining it."
        )
    if bool(((once - distances).abs() > allowed).any()):
        raise ProtoPFaithError(
            f"The distances of a {type(model).__name__} are not the minima of its distance maps, as "
            "explanations expect; where a family has no such maps, let distance_maps give "
            "distances(x)[:, :, None, None]."
        )
    return maps[0]


MOST_NAMED = 8  # prototypes without a class and without a tree


def _ranked_scores(
    model: PrototypeNetwork, distances: Tensor, classes: Sequence[int], route: Route | None
) -> dict[int, float]:
    """The paper's scores of the classes' prototypes: class after class, the largest score first. Where
    outputs are no sums there are no scores: the nodes on the way through a tree, or the nearest prototypes.
    """
    if route is not None:
        return {turn.prototype: math.nan for turn in route.turns}
    if not adds_up(model) or outcome_of(model) == "several":
        return dict.fromkeys(_nearest(model, distances, classes), math.nan)
    ranked: dict[int, float] = {}
    for one in classes:
        scores = paper_scores(model, distances, one)
        members = torch.where(model.prototype_classes.cpu() == one)[0]
        order = scores.argsort(descending=True, stable=True)
        ranked |= dict(zip(members[order].tolist(), scores[order].tolist(), strict=True))
    return ranked


def _nearest(model: PrototypeNetwork, distances: Tensor, classes: Sequence[int]) -> list[int]:
    """The prototypes of some classes, or where they have none of all, nearest first."""
    owners = model.prototype_classes.cpu()
    order = distances.argsort().tolist()
    own = [one for label in classes for one in order if int(owners[one]) == label]
    return own or order[:MOST_NAMED]


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
