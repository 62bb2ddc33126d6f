"""An explanation from its parts: the decision, the games on the test image, and the source images."""

from __future__ import annotations

from torch import Tensor

from protopfaith.explanation.class_maps import class_map
from protopfaith.explanation.decision import Case, rival
from protopfaith.explanation.decomposition import class_row, decompose, similarities
from protopfaith.explanation.explainer import Explainer, SourceSide
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence, SecondBaseline
from protopfaith.explanation.protopnet_map import crop_box
from protopfaith.explanation.regions import region_values
from protopfaith.explanation.rounding import ROUNDING
from protopfaith.explanation.settings import Settings, players_name
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Attribution


def assemble(
    explainer: Explainer,
    case: Case,
    duplicates: dict[int, tuple[int | None, str]],
    result: Attribution,
    *,
    settings: Settings,
    seconds: float,
    sides: dict[int, SourceSide],
    second: SecondBaseline | None,
    coarse: bool,
) -> Explanation:
    """The explanation of `case` whose game gave `result`."""
    from torchvision.transforms.v2.functional import pil_to_tensor  # takes as long to import as torch

    model, n = explainer.model, len(explainer.model.prototypes)
    row = class_row(model, case.target, case.versus).cpu().double()
    picture = case.picture
    return Explanation(
        name=picture.name,
        pixels=picture.pixels,
        original=pil_to_tensor(picture.original),
        class_names=model.class_names,
        probabilities=case.logits.softmax(0),
        prediction=int(case.logits.argmax()),
        target=case.target,
        versus=case.versus,
        decomposition=case.decomposition,
        runner_up=decompose(model, case.distances, case.target, rival(case)),
        evidence=_evidence(model, case, duplicates, result, row=row, sides=sides),
        class_map=class_map(model, result, row),
        prototype_values=result.values[:n],
        method=result.method,
        baseline=result.baseline,
        evaluations=result.evaluations,
        precision=result.precision,
        precision_asked=settings.precision,
        reached=result.reached,
        second=second,
        coarse=coarse,
        seconds=seconds,
        network={
            "encoder": model.encoder_name,
            "similarity": model.similarity,
            "activation": model.activation,
            "prototypes": n,
            "weights_sha256": explainer.weights_hash,
        },
        settings={
            "players": result.players.description,
            "players_asked": players_name(settings.players),
            "budget": settings.budget,
            "seed": settings.seed,
            "options": dict(settings.options),
            "autocast": None if settings.autocast is None else str(settings.autocast).removeprefix("torch."),
            "rounding": result.options.get(ROUNDING),
        },
        notes=_notes(settings, sides),
    )


def _evidence(
    model: ProtoPNet,
    case: Case,
    duplicates: dict[int, tuple[int | None, str]],
    result: Attribution,
    *,
    row: Tensor,
    sides: dict[int, SourceSide],
) -> tuple[PrototypeEvidence, ...]:
    """One for each prototype that is shown."""
    scores = dict(
        zip(case.decomposition.prototypes.tolist(), case.decomposition.scores.tolist(), strict=True)
    )
    similarity = similarities(model, case.distances)
    evidence = []
    for place, prototype in enumerate(case.named):
        owner = int(model.prototype_classes[prototype])
        evidence.append(
            PrototypeEvidence(
                prototype,
                owner,
                model.class_names[owner],
                distance=float(case.distances[prototype]),
                similarity=float(similarity[prototype]),
                weight=float(row[prototype]),
                paper_score=case.paper[prototype],
                score=scores[prototype],
                source=model.sources[prototype],
                duplicate_of=duplicates[prototype][0],
                duplicate_kind=duplicates[prototype][1],
                test=region_values(result, prototype, -1),
                activation=case.activations[place],
                box=crop_box(case.activations[place]),
                source_side=sides.get(prototype),
            )
        )
    return tuple(evidence)


def _notes(settings: Settings, sides: dict[int, SourceSide]) -> tuple[str, ...]:
    if sides and not isinstance(settings.players, int | str):
        size = next(iter(sides.values())).regions.players.description
        return (f"The regions were drawn on the test image; source images are divided into {size} instead.",)
    return ()
