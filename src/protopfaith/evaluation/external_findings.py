"""A network that decides on several findings, on images from elsewhere, beside its own test set."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.anonymous import public_names, safe_cell
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.data.external import External
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.external_answers import ExternalAnswers, ask_about
from protopfaith.evaluation.external_results import DIFFERENCE, EXTERNAL, INTERNAL, file_name, write_external
from protopfaith.evaluation.findings import calibrated, evaluate_findings, judge_logits, write_findings
from protopfaith.evaluation.metrics.bootstrap import RESAMPLES, Interval, difference
from protopfaith.evaluation.metrics.findings import SCORES, FindingsEvaluation, cell_of
from protopfaith.network import PatchNetwork
from protopfaith.training.reference import Reference

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class JudgedFindings:
    """One external image: what is known of its findings, what the network says, or why it says nothing."""

    path: str
    group: str
    known: tuple[int, ...]
    probabilities: tuple[float, ...] = ()
    error: str = ""


@dataclass(frozen=True, eq=False)
class ExternalFindings:
    """A network of several findings on images from elsewhere.

    Args:
        name: of these images
        result: how well each finding is decided on them
        internal: the same on the run's own test images, if these are compared
        parts: the same on every subgroup, by its name
        images: what became of each image
        notes: sentences for people
        resamples: how many sets were drawn for the intervals

    >>> from protopfaith.evaluation import judge_findings
    >>> p, y = torch.tensor([[0.9], [0.2]]), torch.tensor([[1.0], [0.0]])
    >>> ExternalFindings("clinic", judge_findings(p, y, ["edema"], resamples=10), None, {}, (), (), 10)
    ExternalFindings('clinic', FindingsEvaluation(2 images, mean AUROC 1.000))
    """

    name: str
    result: FindingsEvaluation
    internal: FindingsEvaluation | None
    parts: dict[str, FindingsEvaluation]
    images: tuple[JudgedFindings, ...]
    notes: tuple[str, ...]
    resamples: int

    def __repr__(self) -> str:
        return f"ExternalFindings({self.name!r}, {self.result})"

    @property
    def problems(self) -> list[str]:
        """Why images could not be judged, a sentence each."""
        return [image.error for image in self.images if image.error]

    def differences(self) -> dict[str, dict[str, Interval]]:
        """By how much the external images do better in each score, finding by finding; empty where nothing is
        compared."""
        if self.internal is None:
            return {}
        return {
            here.name: {score: difference(getattr(here, score), getattr(there, score)) for score in SCORES}
            for here, there in zip(self.result.findings, self.internal.findings, strict=True)
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts, for JSON; not-a-number becomes None."""
        return {
            **self.result.to_dict(),
            "internal": None if self.internal is None else self.internal.to_dict(),
            "differences": {
                name: {score: found.to_dict() for score, found in scores.items()}
                for name, scores in self.differences().items()
            },
            "subgroups": {name: part.to_dict() for name, part in self.parts.items()},
            "resamples": self.resamples,
            "notes": list(self.notes),
            "not_judged": len(self.problems),
        }

    def table(self) -> Table:
        """For each finding the external images, the internal ones and the difference; then every subgroup."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table

        table = Table(
            title="95% intervals, from drawing whole patients", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        table.add_column("images from", overflow="fold")
        for heading in ("AUROC", "average\nprecision", "sensitivity", "specificity"):
            table.add_column(heading, justify="right", no_wrap=True)
        differences = self.differences()
        for number, here in enumerate(self.result.findings):
            if not here.present + here.absent:
                continue  # nothing is known of it
            table.add_row(escape(here.name), style="bold")
            sets = {f"{EXTERNAL}: {self.name}": here}
            if self.internal is not None:
                sets[INTERNAL] = self.internal.findings[number]
            for name, one in sets.items():
                count = f"present in {one.present} of {one.present + one.absent}"
                scores = [cell_of(getattr(one, score)) for score in SCORES]
                table.add_row(f"{escape(name)}\n{count}", *scores)
            if here.name in differences:
                table.add_row(DIFFERENCE, *map(cell_of, differences[here.name].values()))
            table.add_section()
        table.add_row("mean of the findings", style="bold")
        for name, part in {**self._wholes(), **self.parts}.items():
            means = cell_of(part.mean_auroc), cell_of(part.mean_average_precision)
            table.add_row(f"{escape(name)}\n{part.images} images", *means, "", "")
        return table

    def _wholes(self) -> dict[str, FindingsEvaluation]:
        inside = {} if self.internal is None else {INTERNAL: self.internal}
        return {f"{EXTERNAL}: {self.name}": self.result, **inside}

    def save(self, folder: Path | str) -> Path:
        """Writes numbers, a row for each image, and the pictures into a folder; returns the JSON file.

        Args:
            folder: where to write; made where it is not there
        """
        from protopfaith.show.external_findings import finding_comparison

        folder, name = Path(folder), file_name(self.name)
        write_findings(folder, name, self.result)
        return write_external(folder / name, self.to_dict(), finding_comparison(self), self._image_rows())

    def _image_rows(self) -> list[list[object]]:
        """For each image what is known of each finding, and its probability."""
        names = [one.name for one in self.result.findings]
        headings = [safe_cell(text) for name in names for text in (name, f"probability of {name}")]
        rows: list[list[object]] = [["image", "group", *headings, "error"]]
        shown = public_names([image.path for image in self.images])
        for name, image in zip(shown, self.images, strict=True):
            chances = image.probabilities or (math.nan,) * len(names)
            pairs = [
                value
                for known, p in zip(image.known, chances, strict=True)
                for value in ("" if known < 0 else known, "" if math.isnan(p) else p)
            ]
            rows.append([safe_cell(name), safe_cell(image.group), *pairs, safe_cell(image.error)])
        return rows


def evaluate_external_findings(
    model: PatchNetwork,
    preprocessing: Preprocessing,
    external: External,
    reference: Reference | None = None,
    *,
    internal: ImageSet | None = None,
    seen: Collection[str] = (),
    columns: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    batch_size: int = 64,
) -> ExternalFindings:
    """Judges a network that decides on several findings on images from elsewhere.

    Args:
        model: the network
        preprocessing: how images are prepared for it
        external: the images, from `load_external` with `findings=model.class_names`
        reference: has calibration and thresholds; without it, thresholds of one half
        internal: the run's own test images, to compare with
        seen: fingerprints of the images that it was trained or chosen on; these are left out
        columns: what subgroups are made of; None: sex, age, site and device where they are known
        resamples: sets drawn for the intervals
        seed: of these draws
        batch_size: images in one forward pass

    >>> from protopfaith.data import Sample, load_data
    >>> from protopfaith.network import XProtoNet
    >>> birds = load_data("birds_multilabel", size=32, train=32, validation=0, test=32)
    >>> model = XProtoNet("small", list(birds.classes), 2, 8).eval()
    >>> samples = tuple(Sample(one.path, "", findings=one.findings) for one in birds.test.records)
    >>> other = External("elsewhere", samples, birds.test.image, birds.test.sha256)
    >>> found = evaluate_external_findings(model, birds.preprocessing, other, resamples=20)
    >>> len(found.result.findings), found.result.images
    (6, 32)
    """
    check_arguments(evaluate_external_findings, locals())
    labeled = [index for index, one in enumerate(external.samples) if max(one.findings, default=-1) >= 0]
    if not labeled:
        raise ProtoPFaithError(
            f"Nothing is known of the findings in {external.name}; write 1 or 0 where one is known."
        )
    answers = ask_about(external, labeled, model, preprocessing, seen=seen, batch_size=batch_size)
    notes, groups = answers.notes, answers.groups
    if len(labeled) < len(external):
        notes.append(
            f"Left out, as nothing is known of their findings: {len(external) - len(labeled)} images."
        )
    truth = torch.tensor([external.samples[index].findings for index in answers.judged]).double()
    truth[truth < 0] = torch.nan
    judge = partial(
        judge_logits, names=model.class_names, reference=reference, resamples=resamples, seed=seed
    )
    inside = None
    if internal is not None and len(internal):
        inside = evaluate_findings(
            model,
            internal,
            preprocessing,
            reference,
            batch_size=batch_size,
            resamples=resamples,
            seed=seed + 1,
        )
    members, about_columns = answers.subgroups(columns)
    parts = {
        name: judge(answers.logits[at], truth[at], groups=[groups[place] for place in at], with_raw=False)
        for name, at in members.items()
    }
    return ExternalFindings(
        external.name,
        judge(answers.logits, truth, groups=groups),
        inside,
        parts,
        _images(answers, calibrated(answers.logits, reference)),
        (*external.notes, *notes, *about_columns),
        resamples,
    )


def _images(answers: ExternalAnswers, found: Tensor) -> tuple[JudgedFindings, ...]:
    rows = iter(found.tolist())
    images = []
    for index in answers.asked:
        sample, error = answers.external.samples[index], answers.errors.get(index, "")
        row = () if error else tuple(next(rows))
        images.append(JudgedFindings(sample.path, sample.group, sample.findings, row, error))
    return tuple(images)
