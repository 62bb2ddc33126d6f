"""A trained model on images: sets with labels, or files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.anonymous import public_names, safe_cell
from protopfaith.arguments import named
from protopfaith.csvfile import write_rows
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.classification import Classification, classification
from protopfaith.explanation.familiarity import is_unfamiliar, nearness
from protopfaith.network import PatchNetwork, distinct_prototypes, outcome_of, probabilities
from protopfaith.training.calibration import as_calibrator
from protopfaith.training.metrics import set_logits
from protopfaith.training.reference import Reference, rules_of
from protopfaith.training.thresholds import FindingRule
from protopfaith.training.typical import traits
from protopfaith.writing import atomic

NOT_FINITE = (
    "The network's logits for {} are not finite numbers, so it has no class; if other images fail as well, "
    "train the network anew or use another checkpoint."
)


@dataclass(frozen=True)
class Prediction:
    """One image's class, or what is said of its findings, or why there is neither.

    Args:
        image: its name
        class_name: the most probable class; None where there is none
        probabilities: of the classes or findings, in their order
        error: why there is no answer
        verdicts: of several findings: "present", "absent" or "uncertain"
        unfamiliar: whether the image looks like nothing that the network knows, however sure it is: it is
            farther from what is usual than 99% of the validation images are; None where that is not known
    """

    image: str
    class_name: str | None
    probabilities: tuple[float, ...] = ()
    error: str | None = None
    verdicts: tuple[str, ...] = ()
    unfamiliar: bool | None = None

    @property
    def probability(self) -> float | None:
        return max(self.probabilities, default=None)


def classify_set(
    model: PatchNetwork,
    images: ImageSet,
    preprocessing: Preprocessing,
    batch_size: int = 64,
    temperature: float | None = None,
) -> Classification:
    """How well `model` classifies a set with labels, and how many distinct prototypes each class has."""
    if not len(images):
        raise ProtoPFaithError("The set holds no images to evaluate on; choose another split.")
    logits = set_logits(model, images, preprocessing, batch_size)
    result = classification(logits, images.labels, model.class_names, temperature)
    per_class = distinct_prototypes(model).per_class
    return replace(result, distinct_prototypes=per_class) if any(per_class) else result  # else of no class


def write_classification(folder: Path, name: str, result: Classification) -> None:
    """`name`.json, the confusion matrix as `name`-confusion.png, and how often the network is right by how
    sure it is as `name`-reliability.png."""
    from protopfaith.show.confusion import confusion_figure
    from protopfaith.show.reliability import reliability_figure

    with atomic(folder / f"{name}.json") as partial:
        partial.write_text(json.dumps(result.to_dict(), indent=2))
    with atomic(folder / f"{name}-confusion.png") as partial:
        confusion_figure(result).savefig(partial, format="png")
    if result.calibration is not None:
        with atomic(folder / f"{name}-reliability.png") as partial:
            reliability_figure(result.calibration).savefig(partial, format="png")


def predict_files(
    model: PatchNetwork,
    preprocessing: Preprocessing,
    paths: Iterable[Path | str],
    batch_size: int = 64,
    *,
    reference: Reference | None = None,
) -> Iterator[Prediction]:
    """A prediction for each file, in their order; one that cannot be read, or that the network gives no
    numbers for, carries the reason. The `reference` calibrates probabilities, and says how those of several
    findings are read and what is unfamiliar."""
    remaining, names = iter(paths), model.class_names
    while chunk := list(islice(remaining, batch_size)):
        for prediction in _predict_chunk(model, preprocessing, chunk, reference):
            several = outcome_of(model) == "several" and prediction.error is None
            yield with_verdicts(prediction, names, rules_of(reference, len(names))) if several else prediction


def with_verdicts(prediction: Prediction, names: Sequence[str], rules: Sequence[FindingRule]) -> Prediction:
    """What the probabilities of several findings say."""
    verdicts = tuple(rule.verdict(p) for rule, p in zip(rules, prediction.probabilities, strict=True))
    there = ", ".join(name for name, verdict in zip(names, verdicts, strict=True) if verdict == "present")
    return replace(prediction, class_name=there, verdicts=verdicts)


@torch.no_grad()
def _predict_chunk(
    model: PatchNetwork,
    preprocessing: Preprocessing,
    paths: Sequence[Path | str],
    reference: Reference | None,
) -> Iterator[Prediction]:
    calibrator = as_calibrator(None if reference is None else reference.calibrator)
    inputs: list[Tensor | str] = []
    for path in paths:
        try:
            inputs.append(preprocessing(preprocessing.read(path)))
        except ProtoPFaithError as error:
            inputs.append(str(error))
    readable = [image for image in inputs if isinstance(image, Tensor)]
    rows: Iterator[tuple[Tensor, Tensor, Tensor]] = iter(())
    if readable:
        images = torch.stack(readable).to(model.prototypes.device)
        maps = model.distance_maps(images)
        distances = maps.amin(dim=(-2, -1))
        scores = calibrator(model.logits(distances).cpu())
        rows = zip(distances.cpu(), traits(model, images, maps, scores.argmax(1)), scores, strict=True)
    for path, image in zip(paths, inputs, strict=True):
        if isinstance(image, str):
            yield Prediction(str(path), None, error=image)
        else:
            distances, found_traits, logits = next(rows)
            found = _prediction(str(path), logits, model)
            if found.error is None:
                near = nearness(model, distances, found_traits, int(logits.argmax()), reference)
                found = replace(found, unfamiliar=is_unfamiliar(*near))
            yield found


def _prediction(path: str, logits: Tensor, model: PatchNetwork) -> Prediction:
    if not bool(logits.isfinite().all()):  # the softmax is not a number then, and its largest is the first
        return Prediction(path, None, error=NOT_FINITE.format(path))
    found = probabilities(logits, outcome_of(model))
    return Prediction(path, model.class_names[int(found.argmax())], tuple(found.tolist()))


def write_predictions(
    path: Path, predictions: Sequence[Prediction], class_names: Sequence[str], *, anonymous: bool = False
) -> None:
    """A CSV file: image, class, the probability of every class, whether the image is familiar (yes, no, or
    empty where that is not known), and what went wrong, if anything.

    Images go by their names, without the folders that they lie in; `anonymous`: by numbers.
    """
    rows: list[list[object]] = [["image", "class", *map(safe_cell, class_names), "familiar", "error"]]
    names = public_names([item.image for item in predictions], anonymous=anonymous)
    for name, item in zip(names, predictions, strict=True):
        numbers = item.probabilities or ("",) * len(class_names)
        error = (item.error or "").replace(item.image, name).replace(named(item.image), name)
        familiar = {None: "", True: "no", False: "yes"}[item.unfamiliar]
        texts = (safe_cell(name), safe_cell(item.class_name or ""))
        rows.append([*texts, *numbers, familiar, safe_cell(error)])
    write_rows(path, rows)
