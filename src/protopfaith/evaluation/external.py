"""A network on images from elsewhere, beside its own test set, with intervals and subgroups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import some_of
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.data.external import External
from protopfaith.evaluation.external_answers import ExternalAnswers, ask_about, match_classes
from protopfaith.evaluation.external_results import (
    DIFFERENCE,
    EXTERNAL,
    INTERNAL,
    ExternalEvaluation,
    Judged,
    Row,
)
from protopfaith.evaluation.metrics.bootstrap import (
    RESAMPLES,
    SCORES,
    Bootstrap,
    bootstrap,
    difference,
)
from protopfaith.evaluation.metrics.classification import classification
from protopfaith.network import PatchNetwork, distinct_prototypes
from protopfaith.training.metrics import set_logits

FEW = 30  # images of a subgroup, below which its interval says little


def evaluate_external(
    model: PatchNetwork,
    preprocessing: Preprocessing,
    external: External,
    *,
    internal: ImageSet | None = None,
    seen: Collection[str] = (),
    temperature: float | None = None,
    columns: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    batch_size: int = 64,
) -> ExternalEvaluation:
    """Judges a network on images from elsewhere.

    Args:
        model: the network
        preprocessing: how images are prepared for it
        external: the images, see `load_external`
        internal: the run's own test images, to compare with
        seen: fingerprints of the images that it was trained or chosen on; these are left out
        temperature: that its logits are divided by, for calibration
        columns: what subgroups are made of; None: sex, age, site and device where they are known
        resamples: sets drawn for the intervals
        seed: of these draws
        batch_size: images in one forward pass

    >>> from protopfaith.data import Sample, load_data
    >>> birds = load_data("birds", size=32, train=8, validation=8, test=8)
    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", birds.classes, prototype_channels=8).eval()
    >>> samples = tuple(Sample(path, birds.classes[i]) for i, path in enumerate(birds.test.paths))
    >>> other = External("elsewhere", samples, birds.test.image, birds.test.sha256)
    >>> found = evaluate_external(model, birds.preprocessing, other, internal=birds.validation, resamples=20)
    >>> [row.name for row in found.rows]
    ['external: elsewhere', 'internal test set', 'difference']
    """
    check_arguments(evaluate_external, locals())
    labels, notes = match_classes([sample.label for sample in external.samples], model.class_names)
    known = [index for index, label in enumerate(labels) if label is not None]
    answers = ask_about(external, known, model, preprocessing, seen=seen, batch_size=batch_size)
    logits, groups = answers.logits, answers.groups
    truth = torch.tensor([labels[index] for index in answers.judged])
    notes += [*answers.notes, *_about_missing(truth, model.class_names)]
    result = classification(logits, truth, model.class_names, temperature)
    result = replace(result, distinct_prototypes=distinct_prototypes(model).per_class)
    whole = bootstrap(logits, truth, groups, resamples=resamples, seed=seed)
    rows = [_row(f"{EXTERNAL}: {external.name}", whole)]
    if internal is not None and len(internal):
        logits_inside = set_logits(model, internal, preprocessing, batch_size)
        rows += _beside(whole, internal, logits_inside, resamples=resamples, seed=seed + 1)
    members, about_columns = answers.subgroups(columns)
    for name, places in members.items():
        some = [groups[place] for place in places]
        part = bootstrap(logits[places], truth[places], some, resamples=resamples, seed=seed)
        rows.append(_row(name, part))
    return ExternalEvaluation(
        external.name,
        result,
        tuple(rows),
        _images(answers, logits / (temperature or 1.0), model.class_names),
        (*external.notes, *notes, *about_columns, *_about_few(rows)),
        resamples,
    )


def _beside(whole: Bootstrap, internal: ImageSet, logits: Tensor, *, resamples: int, seed: int) -> list[Row]:
    """The run's own images, and how much worse (or better) the external ones do."""
    groups = [record.group for record in internal.records]
    own = bootstrap(logits, internal.labels, groups, resamples=resamples, seed=seed)
    differences = {score: difference(whole.interval(score), own.interval(score)) for score in SCORES}
    return [_row(INTERNAL, own), Row(DIFFERENCE, 0, 0, differences)]


def _row(name: str, found: Bootstrap) -> Row:
    return Row(name, found.images, found.groups, {score: found.interval(score) for score in SCORES})


def _images(answers: ExternalAnswers, logits: Tensor, names: Sequence[str]) -> tuple[Judged, ...]:
    """What became of each image; `logits` are the calibrated ones."""
    sure, chosen = logits.double().softmax(1).max(1)
    results = iter(zip(chosen.tolist(), sure.tolist(), strict=True))
    images = []
    for index in answers.asked:
        sample = answers.external.samples[index]
        if index in answers.errors:
            images.append(Judged(sample.path, sample.label, sample.group, error=answers.errors[index]))
            continue
        predicted, probability = next(results)
        images.append(Judged(sample.path, sample.label, sample.group, names[predicted], probability))
    return tuple(images)


def _about_missing(truth: Tensor, names: Sequence[str]) -> list[str]:
    present = set(truth.tolist())
    missing = [name for index, name in enumerate(names) if index not in present]
    if not missing:
        return []
    some = some_of(missing, 5)
    return [
        f"{len(missing)} of {len(names)} classes have no images here ({some}); means are over the others."
    ]


def _about_few(rows: Sequence[Row]) -> list[str]:
    few = [row.name for row in rows if row.name != DIFFERENCE and row.groups < FEW]
    if not few:
        return []
    return [f"Fewer than {FEW} images or patients each, so that intervals are rough: {some_of(few, 5)}."]
