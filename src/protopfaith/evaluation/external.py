"""A network on images from elsewhere, beside its own test set, with intervals and subgroups."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.anonymous import public_names, safe_cell
from protopfaith.arguments import named, whole_number
from protopfaith.csvfile import write_rows
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.data.external import External
from protopfaith.data.findings import loosely
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.bootstrap import (
    RESAMPLES,
    SCORES,
    Bootstrap,
    Interval,
    bootstrap,
    difference,
)
from protopfaith.evaluation.metrics.classification import Classification, classification
from protopfaith.evaluation.metrics.subgroups import subgroups
from protopfaith.evaluation.prediction import NOT_FINITE
from protopfaith.files import atomic
from protopfaith.network import PatchNetwork, distinct_prototypes
from protopfaith.registry import did_you_mean
from protopfaith.training.metrics import set_logits

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

INTERNAL, EXTERNAL, DIFFERENCE = "internal test set", "external", "difference"
FEW = 30  # images of a subgroup, below which its interval says little


@dataclass(frozen=True)
class Row:
    """One set of images: the external ones, the run's own test images, a subgroup, or a difference.

    Args:
        name: of the set
        images: how many
        groups: patients among them, or images that stand alone
        scores: accuracy, balanced accuracy and AUROC with their intervals
    """

    name: str
    images: int
    groups: int
    scores: dict[str, Interval]


@dataclass(frozen=True)
class Judged:
    """One external image: its class, the one that it was taken for, or why there is none."""

    path: str
    label: str
    group: str
    predicted: str = ""
    probability: float = math.nan
    error: str = ""


@dataclass(frozen=True, eq=False)
class ExternalEvaluation:
    """A network on images from elsewhere.

    Args:
        name: of these images
        result: the classification of those that could be judged
        rows: external, internal and their difference, then every subgroup
        images: what became of each image
        notes: sentences for people: classes that are not there, images that were left out, ...
        resamples: how many sets were drawn for the intervals

    >>> from protopfaith.evaluation.metrics.classification import classification
    >>> result = classification(torch.eye(2), torch.tensor([0, 1]), ["cat", "dog"])
    >>> row = Row("external: clinic", 2, 2, {"balanced_accuracy": Interval(1.0, 0.16, 1.0)})
    >>> ExternalEvaluation("clinic", result, (row,), (), (), 1000)
    ExternalEvaluation('clinic', 1.000 (0.160 to 1.000))
    """

    name: str
    result: Classification
    rows: tuple[Row, ...]
    images: tuple[Judged, ...]
    notes: tuple[str, ...]
    resamples: int

    def __repr__(self) -> str:
        return f"ExternalEvaluation({self.name!r}, {self.rows[0].scores['balanced_accuracy']})"

    @property
    def problems(self) -> list[str]:
        """Why images could not be judged, a sentence each."""
        return [image.error for image in self.images if image.error]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts, for JSON; not-a-number becomes None."""
        rows = [
            {**asdict(row), "scores": {name: _plain(interval) for name, interval in row.scores.items()}}
            for row in self.rows
        ]
        return {
            **self.result.to_dict(),
            "rows": rows,
            "resamples": self.resamples,
            "notes": list(self.notes),
            "not_judged": len(self.problems),
        }

    def table(self) -> Table:
        """One line for each set, for `rich.print`."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(title="95% intervals: percentiles of a bootstrap over groups")
        table.add_column("images from", overflow="fold")
        for heading in ("images", "groups", "accuracy", "balanced accuracy", "AUROC"):
            table.add_column(heading, justify="right")
        for row in self.rows:
            counts = ("", "") if row.name == DIFFERENCE else (f"{row.images:,}", f"{row.groups:,}")
            table.add_row(escape(row.name), *counts, *(str(row.scores[score]) for score in SCORES))
        return table

    def save(self, folder: Path | str) -> Path:
        """Writes numbers, a row for each image, and the pictures into a folder; returns the JSON file.

        Args:
            folder: where to write; made where it is not there
        """
        from protopfaith.evaluation.prediction import write_classification
        from protopfaith.show.external import comparison_figure

        folder, name = Path(folder), file_name(self.name)
        write_classification(folder, name, self.result)
        return write_external(folder / name, self.to_dict(), comparison_figure(self), self._image_rows())

    def _image_rows(self) -> list[list[object]]:
        rows: list[list[object]] = [["image", "class", "group", "predicted", "probability", "error"]]
        names = public_names([image.path for image in self.images])
        for name, image in zip(names, self.images, strict=True):
            probability = "" if math.isnan(image.probability) else image.probability
            texts = map(safe_cell, (name, image.label, image.group, image.predicted))
            rows.append([*texts, probability, safe_cell(image.error)])
        return rows


def write_external(place: Path, numbers: dict[str, Any], figure: Figure, rows: list[list[object]]) -> Path:
    """What results on external data leave, in files that begin alike: the numbers, whose file is returned, a
    comparison as a picture, and a table with a row for each image."""
    with atomic(place.with_name(f"{place.name}.json")) as partial:
        partial.write_text(json.dumps(numbers, indent=2))
    with atomic(place.with_name(f"{place.name}-compared.png")) as partial:
        figure.savefig(partial, format="png")
    write_rows(place.with_name(f"{place.name}-images.csv"), rows)
    return place.with_name(f"{place.name}.json")


def file_name(name: str) -> str:
    """What results on external data are called: never that of a split.

    >>> file_name("St. Mary's 2024")
    'external-St._Mary_s_2024'
    """
    return f"external-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:60]}"


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


@dataclass(frozen=True, eq=False)
class ExternalAnswers:
    """What a network says to images from elsewhere.

    Args:
        external: the images
        asked: which of them it was asked about: those that it was neither trained nor chosen on
        judged: those of them that could be read and have finite logits
        errors: why the others could not be judged
        logits: of the judged ones, on the CPU
        notes: sentences for people
    """

    external: External
    asked: list[int]
    judged: list[int]
    errors: dict[int, str]
    logits: Tensor
    notes: list[str]

    @property
    def groups(self) -> list[str]:
        """Which of the judged images belong together."""
        return [self.external.samples[index].group for index in self.judged]

    def subgroups(self, columns: Sequence[str] | None) -> tuple[dict[str, list[int]], list[str]]:
        """The places among the judged images of each subgroup, by its name, and sentences about columns."""
        members, notes = subgroups([self.external.samples[index].about for index in self.judged], columns)
        named_members = {
            f"{key}: {value}": at for key, values in members.items() for value, at in values.items()
        }
        return named_members, notes


def ask_about(
    external: External,
    indices: Sequence[int],
    model: PatchNetwork,
    preprocessing: Preprocessing,
    *,
    seen: Collection[str],
    batch_size: int,
) -> ExternalAnswers:
    """Asks a network about images from elsewhere; raises if none can be judged.

    Args:
        external: the images
        indices: those of which the truth is known
        model: the network
        preprocessing: how images are prepared for it
        seen: fingerprints of the images that it was trained or chosen on; these are left out
        batch_size: images in one forward pass
    """
    fresh, notes = _not_seen(external, indices, seen)
    logits, errors = _logits(model, preprocessing, external, fresh, batch_size)
    judged = [index for index in fresh if index not in errors]
    if not judged:
        raise ProtoPFaithError(f"No image of {external.name} could be judged. {next(iter(errors.values()))}")
    return ExternalAnswers(external, fresh, judged, errors, logits, notes)


def _not_seen(
    external: External, indices: Sequence[int], seen: Collection[str]
) -> tuple[list[int], list[str]]:
    """The images that the network was neither trained nor chosen on, and a sentence about the others."""
    fresh = [index for index in indices if not len(seen) or external.sha256(index) not in seen]
    if not fresh:
        raise ProtoPFaithError(
            f"No image of {external.name} is left to judge the network on, since it was trained or chosen on "
            "all of them; give images that it has not seen."
        )
    return fresh, _about_seen(len(indices) - len(fresh))


def match_classes(labels: Sequence[str], class_names: Sequence[str]) -> tuple[list[int | None], list[str]]:
    """The class of each label, by its name or else whatever its case, spaces and underscores; None where the
    network has no such class, with a sentence about these.

    >>> match_classes(["Lung_Opacity", "normal", "other"], ["normal", "lung opacity"])[0]
    [1, 0, None]
    """
    exact = {name: index for index, name in enumerate(class_names)}
    counts = Counter(map(loosely, class_names))
    loose = {loosely(name): i for i, name in enumerate(class_names) if counts[loosely(name)] == 1}
    found = [exact.get(label, loose.get(loosely(label))) for label in labels]
    unknown = Counter(label for label, index in zip(labels, found, strict=True) if index is None)
    if not unknown:
        return found, []
    name = next(iter(unknown))
    if all(index is None for index in found):
        raise ProtoPFaithError(
            f"The network knows none of the classes of these images, such as {name[:80]!r}; "
            f"{did_you_mean(name, class_names)}"
        )
    named_some = ", ".join(f"{label[:80]!r} ({count})" for label, count in unknown.most_common(5))
    more = ", ..." if len(unknown) > 5 else ""
    return found, [f"Images of classes that the network does not have are left out: {named_some}{more}."]


@torch.no_grad()
def _logits(
    model: PatchNetwork,
    preprocessing: Preprocessing,
    external: External,
    indices: Sequence[int],
    batch_size: int,
) -> tuple[Tensor, dict[int, str]]:
    """The logits of the images that can be read (on the CPU), and why there are none of the others."""
    whole_number(batch_size, "The batch size", least=1)
    device = model.prototypes.device
    rows, errors = [torch.empty(0, len(model.class_names))], {}
    for start in range(0, len(indices), batch_size):
        pixels = {}
        for index in indices[start : start + batch_size]:
            try:
                pixels[index] = external.pixels(index)
            except ProtoPFaithError as error:
                errors[index] = str(error)
        if not pixels:
            continue
        logits = model(preprocessing.normalize(torch.stack(list(pixels.values())).to(device))).cpu().float()
        finite = logits.isfinite().all(1)
        for index, good in zip(pixels, finite.tolist(), strict=True):
            if not good:
                errors[index] = NOT_FINITE.format(named(external.samples[index].path))
        rows.append(logits[finite])
    return torch.cat(rows), errors


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


def _about_seen(count: int) -> list[str]:
    if not count:
        return []
    return [f"Left out, as the network was trained or chosen on them: {count} of the images."]


def _about_missing(truth: Tensor, names: Sequence[str]) -> list[str]:
    present = set(truth.tolist())
    missing = [name for index, name in enumerate(names) if index not in present]
    if not missing:
        return []
    some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
    return [
        f"{len(missing)} of {len(names)} classes have no images here ({some}); means are over the others."
    ]


def _about_few(rows: Sequence[Row]) -> list[str]:
    few = [row.name for row in rows if row.name != DIFFERENCE and row.groups < FEW]
    if not few:
        return []
    some = ", ".join(few[:5]) + (", ..." if len(few) > 5 else "")
    return [f"Fewer than {FEW} images or patients each, so that intervals are rough: {some}."]


def _plain(interval: Interval) -> dict[str, float | None]:
    return {key: None if math.isnan(value) else value for key, value in asdict(interval).items()}
