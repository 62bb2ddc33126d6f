"""How an explanation is put together: from a decision, its game, and prototypes on their source images."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from protopfaith.explanation.decision import Decision, finding_number
from protopfaith.explanation.decomposition import (
    Closeness,
    Decomposition,
    closeness,
    decompose,
    output_row,
    similarities,
)
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence, SecondBaseline
from protopfaith.explanation.familiarity import familiarity
from protopfaith.explanation.findings import findings_of
from protopfaith.explanation.game import ROUNDING, output_names
from protopfaith.explanation.protopnet_map import crop_box, own_map_name
from protopfaith.explanation.regions import RegionValues, agreement, class_map, region_values
from protopfaith.explanation.settings import Settings, players_name
from protopfaith.explanation.sources import SourcePart, SourceSide
from protopfaith.network import PrototypeNetwork, class_of, probabilities
from protopfaith.shapley import Attribution
from protopfaith.training.reference import Reference


def assemble(
    model: PrototypeNetwork,
    decision: Decision,
    result: Attribution,
    settings: Settings,
    *,
    weights_hash: str,
    reference: Reference | None,
    sides: dict[int, SourceSide],
    second: Attribution | None,
    coarse: bool,
    seconds: float,
    source_evaluations: int = 0,
    parts: dict[int, SourcePart] | None = None,
) -> Explanation:
    """Puts an explanation together.

    Args:
        model: the network that decided
        decision: what it said about the image
        result: the game on the image, see `protopfaith.explanation.game.play_decision`
        settings: how it was played
        weights_hash: of the network
        reference: what it is compared with, where known
        sides: prototypes on their source images, as far as wanted
        second: the game with another baseline
        coarse: whether this is the first, quick answer
        seconds: what it took
        source_evaluations: of the network on source images that were not known yet
        parts: of source images, of prototypes that are in none of the `sides`
    """
    from torchvision.transforms.v2.functional import pil_to_tensor  # takes as long to import as torch

    maps = _maps(model, decision, settings, result)
    numbers = {name: finding_number(name) for name in maps}
    of_findings = {number: maps.pop(name) for name, number in numbers.items() if number is not None}
    several = decision.outcome == "several"
    near = familiarity(model, decision, reference)
    return Explanation(
        name=decision.picture.name,
        pixels=decision.picture.pixels,
        original=pil_to_tensor(decision.picture.original),
        class_names=model.class_names,
        probabilities=decision.probabilities,
        prediction=int(decision.logits.argmax()),
        target=decision.target,
        versus=decision.versus,
        decomposition=decision.decomposition,
        runner_up=_against_rival(model, decision),
        evidence=_evidence(model, decision, result, sides, parts or {}),
        class_map=maps.pop(decision.output),
        prototype_values=result.values[: len(model.prototypes)],
        method=result.method,
        baseline=result.baseline,
        evaluations=result.evaluations,
        precision=result.precision,
        precision_asked=settings.precision,
        reached=result.reached,
        second=None if second is None else _compared(model, decision, settings, result, second),
        coarse=coarse,
        seconds=seconds,
        network=_network_facts(model, weights_hash),
        settings={**_settings_facts(settings, result), "device": str(model.prototypes.device)},
        notes=_notes(settings, sides, reference),
        output=decision.output,
        other_maps=maps,
        rival=None if several else decision.rival,
        temperature=decision.temperature,
        empty_probabilities=probabilities(decision.empty_logits, decision.outcome),
        closeness=_closeness(model, decision, reference, decision.target, decision.rival),
        rival_closeness=None
        if several
        else _closeness(model, decision, reference, decision.rival, decision.target),
        nearest_distance=near.nearest,
        usual_distance=near.usual,
        evaluations_in_all=result.evaluations + source_evaluations + (second.evaluations if second else 0),
        path=decision.picture.path,
        route=decision.route,
        findings=findings_of(model, decision, reference, of_findings),
    )


def _against_rival(model: PrototypeNetwork, decision: Decision) -> Decomposition | None:
    if not decision.adds_up:
        return None
    if decision.outcome == "several":  # its presence against its absence: the same log odds
        return decision.decomposition
    return decompose(
        model, decision.distances, decision.target, decision.rival, temperature=decision.calibrator
    )


def _maps(
    model: PrototypeNetwork, decision: Decision, settings: Settings, result: Attribution
) -> dict[str, RegionValues]:
    """The maps of everything that could be explained, by name."""
    first = len(model.prototypes)
    return {
        name: class_map(
            model,
            result,
            first + place,
            decision.row(model, name) if decision.adds_up and name != "log_probability" else None,
        )
        for place, name in enumerate(output_names(decision, settings))
    }


def _closeness(
    model: PrototypeNetwork, decision: Decision, reference: Reference | None, target: int, versus: int
) -> Closeness | None:
    if reference is None or not decision.adds_up:
        return None
    row = output_row(model, decision.output, target, versus) / (decision.temperature or 1.0)
    found = closeness(model, decision.distances, row, reference.mean_similarities, target)
    return replace(found, average=found.average + decision.calibrator.offset(target))


def _evidence(
    model: PrototypeNetwork,
    decision: Decision,
    result: Attribution,
    sides: dict[int, SourceSide],
    parts: dict[int, SourcePart],
) -> tuple[PrototypeEvidence, ...]:
    """One for each prototype that is shown."""
    scores, similarity = _scores(decision), similarities(model, decision.distances)
    row = decision.row(model) if decision.adds_up else torch.full_like(decision.distances, torch.nan)
    evidence = []
    for prototype, activation in zip(decision.named, decision.activations, strict=True):
        evidence.append(
            PrototypeEvidence(
                prototype,
                int(model.prototype_classes[prototype]),
                class_of(model, prototype),
                distance=float(decision.distances[prototype]),
                similarity=float(similarity[prototype]),
                weight=float(row[prototype]),
                paper_score=decision.paper[prototype],
                score=scores.get(prototype, math.nan),
                source=model.sources[prototype],
                duplicate_of=decision.duplicates[prototype][0],
                duplicate_kind=decision.duplicates[prototype][1],
                test=region_values(result, prototype, -1),
                activation=activation,
                box=crop_box(activation),
                source_side=sides.get(prototype),
                source_part=parts.get(prototype),
            )
        )
    return tuple(evidence)


def _scores(decision: Decision) -> dict[int, float]:
    """What each prototype adds to the log probability, of the class or of the leaf that is reached."""
    if decision.route is not None:
        return {turn.prototype: turn.log_probability for turn in decision.route.turns}
    complete = decision.decomposition
    if complete is None:
        return {}
    return dict(zip(complete.prototypes.tolist(), complete.scores.tolist(), strict=True))


def _compared(
    model: PrototypeNetwork, decision: Decision, settings: Settings, first: Attribution, second: Attribution
) -> SecondBaseline:
    maps = [_maps(model, decision, settings, result)[decision.output] for result in (first, second)]
    return SecondBaseline(
        second.baseline,
        maps[1],
        agreement(*maps),
        {p: agreement(region_values(first, p, -1), region_values(second, p, -1)) for p in decision.named},
    )


def _network_facts(model: PrototypeNetwork, weights_hash: str) -> dict[str, Any]:
    return {
        "encoder": model.encoder_name,
        "similarity": model.similarity,
        "activation": model.activation,
        "prototypes": len(model.prototypes),
        "weights_sha256": weights_hash,
        "own_map": own_map_name(model),
    }


def _settings_facts(settings: Settings, result: Attribution) -> dict[str, Any]:
    return {
        "players": result.players.description,
        "players_asked": players_name(settings.players),
        "budget": settings.budget,
        "source_budget": settings.source_budget,
        "seed": settings.seed,
        "estimator": settings.estimator,
        "sources": settings.sources,
        "source_parts": settings.source_parts,
        "output": settings.output,
        "options": dict(settings.options),
        "autocast": None if settings.autocast is None else str(settings.autocast).removeprefix("torch."),
        "rounding": result.options.get(ROUNDING),
    }


def _notes(settings: Settings, sides: dict[int, SourceSide], reference: Reference | None) -> tuple[str, ...]:
    notes = []
    if sides and not isinstance(settings.players, int | str):
        size = next(iter(sides.values())).regions.players.description
        notes.append(
            f"The regions were drawn on the test image; source images are divided into {size} instead."
        )
    notes.append("" if reference is None else reference.about_hidden())
    return tuple(filter(None, notes))
